"""A training as people write it, with PyTorch's SummaryWriter and its usual folder; no word of a platform."""

import time

import torch
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter()
model = torch.nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(256, 10)
targets = inputs @ torch.arange(10.0).unsqueeze(1)
for epoch in range(60):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("Loss/train", loss.item(), epoch)
    if epoch % 20 == 0:
        writer.add_histogram("weight", model.weight, epoch)
        writer.add_image("weight", model.weight.detach().reshape(1, 1, 10).sigmoid(), epoch)
        writer.flush()
    time.sleep(0.15)
writer.close()
print(f"done, loss {loss.item():.3f}", flush=True)
