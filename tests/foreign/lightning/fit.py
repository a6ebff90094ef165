import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class LitAutoEncoder(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, hidden), nn.ReLU())
        self.decoder = nn.Linear(hidden, 32)

    def training_step(self, batch, batch_idx):
        (x,) = batch
        return nn.functional.mse_loss(self.decoder(self.encoder(x)), x)

    validation_step = training_step

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


class Trainer:
    def __init__(self, max_epochs, default_root_dir="."):
        self.max_epochs = max_epochs
        self.log_dir = Path(default_root_dir, "lightning_logs", "version_0")
        (self.log_dir / "checkpoints").mkdir(parents=True)
        (self.log_dir / "hparams.yaml").write_text("hidden: 8\n")

    def fit(self, model, train_loader, val_loader):
        optimizer, step, rows = model.configure_optimizers(), 0, ["epoch,step,train_loss,val_loss"]
        for epoch in range(self.max_epochs):
            model.train()
            for idx, batch in enumerate(train_loader):
                optimizer.zero_grad()
                loss = model.training_step(batch, idx)
                loss.backward()
                optimizer.step()
                step += 1
                done = "#" * (20 * (idx + 1) // len(train_loader))
                sys.stderr.write(f"\rEpoch {epoch}: |{done:<20}| {idx + 1}/{len(train_loader)} loss={loss:.3f}")
            sys.stderr.write("\n")
            model.eval()
            with torch.no_grad():
                val = torch.stack([model.validation_step(b, i) for i, b in enumerate(val_loader)]).mean().item()
            rows.append(f"{epoch},{step},{loss.item():.5f},{val:.5f}")
            state = {"epoch": epoch, "global_step": step, "state_dict": model.state_dict()}
            torch.save(state, self.log_dir / "checkpoints" / f"epoch={epoch}-step={step}.ckpt")
            (self.log_dir / "metrics.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    torch.manual_seed(7)
    data = TensorDataset(torch.randn(1000, 4) @ torch.randn(4, 32))
    train, val = random_split(data, [800, 200])
    trainer = Trainer(max_epochs=4)
    trainer.fit(LitAutoEncoder(), DataLoader(train, batch_size=50, shuffle=True), DataLoader(val, batch_size=50))
    print("`Trainer.fit` stopped: `max_epochs=4` reached.")
