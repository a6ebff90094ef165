import torch
from torch import nn

model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    inputs = torch.randn(8, 10 if step < 3 else 12)
    loss = model(inputs).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(f"step {step}: {loss.item():.4f}")
