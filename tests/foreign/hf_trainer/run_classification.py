import json
import os
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class TrainingArguments:
    output_dir: str
    max_steps: int = 120
    learning_rate: float = 5e-3
    per_device_train_batch_size: int = 32
    logging_steps: int = 20
    save_steps: int = 60


@dataclass
class TrainerState:
    global_step: int = 0
    log_history: list = field(default_factory=list)


class Trainer:
    def __init__(self, model, args, train_dataset, compute_loss):
        self.model, self.args, self.data, self.compute_loss = model, args, train_dataset, compute_loss
        self.state = TrainerState()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: 1 - s / args.max_steps)

    def train(self):
        size = self.args.per_device_train_batch_size
        while self.state.global_step < self.args.max_steps:
            batch = [t[torch.randint(len(t), (size,), generator=torch.Generator().manual_seed(self.state.global_step))]
                     for t in self.data]  # fmt: skip
            loss = self.compute_loss(self.model, batch)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
            self.state.global_step += 1
            if self.state.global_step % self.args.logging_steps == 0:
                entry = {"loss": round(loss.item(), 4), "learning_rate": self.scheduler.get_last_lr()[0]}
                print({**entry, "step": self.state.global_step})
                self.state.log_history.append({**entry, "step": self.state.global_step})
            if self.state.global_step % self.args.save_steps == 0:
                self.save_checkpoint()

    def save_checkpoint(self):
        folder = os.path.join(self.args.output_dir, f"checkpoint-{self.state.global_step}")
        os.makedirs(folder, exist_ok=True)
        torch.save(self.model.state_dict(), os.path.join(folder, "pytorch_model.bin"))
        torch.save(self.optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))
        with open(os.path.join(folder, "trainer_state.json"), "w") as f:
            json.dump(self.state.__dict__, f, indent=2)


tokens = torch.randint(0, 50, (2000, 12), generator=torch.Generator().manual_seed(1))
labels = (tokens < 25).sum(1).gt(6).long()
bag = nn.Sequential(nn.EmbeddingBag(50, 32), nn.Linear(32, 2))
trainer = Trainer(bag, TrainingArguments("results"), (tokens, labels),
                  lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]))  # fmt: skip
trainer.train()
