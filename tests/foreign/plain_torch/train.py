import argparse
import csv
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Two spirals, a small MLP")
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--save-dir", default="runs/exp1")
args = parser.parse_args()

torch.manual_seed(42)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print("Using device:", device)

n = 400
theta = torch.sqrt(torch.rand(2 * n)) * 6
label = (torch.arange(2 * n) % 2).long()
x = torch.stack([theta * torch.cos(theta + label * 3.14), theta * torch.sin(theta + label * 3.14)], dim=1) / 6
loader = DataLoader(TensorDataset(x, label), batch_size=args.batch_size, shuffle=True)

model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
os.makedirs(args.save_dir, exist_ok=True)

with open(os.path.join(args.save_dir, "results.csv"), "w", newline="") as f:
    writer = csv.writer(f)
    writer.writerow(["epoch", "loss", "accuracy"])
    best = 0.0
    for epoch in range(args.epochs):
        total, correct = 0.0, 0
        for xb, yb in loader:
            xb, yb = xb.to(device), yb.to(device)
            optimizer.zero_grad()
            out = model(xb)
            loss = criterion(out, yb)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
            correct += (out.argmax(1) == yb).sum().item()
        acc = correct / len(x)
        print(f"Epoch [{epoch + 1}/{args.epochs}] loss: {total / len(x):.4f} acc: {acc:.4f}")
        writer.writerow([epoch, total / len(x), acc])
        torch.save({"epoch": epoch, "model": model.state_dict()}, os.path.join(args.save_dir, "last.pt"))
        if acc > best:
            best = acc
            torch.save(model.state_dict(), os.path.join(args.save_dir, "best.pt"))
print(f"Training finished, best acc {best:.4f}")
