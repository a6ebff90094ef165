import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def setup():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
    local_rank = int(os.environ["LOCAL_RANK"])
    if backend == "nccl":
        torch.cuda.set_device(local_rank)
        return torch.device("cuda", local_rank)
    return torch.device("cpu")


def main():
    device = setup()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x = torch.randn(512, 16)
    y = x @ torch.randn(16, 1) + 0.1 * torch.randn(512, 1)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(8):
        sampler.set_epoch(epoch)
        running = torch.zeros(2, device=device)
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb.to(device)), yb.to(device))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += torch.tensor([loss.item() * len(xb), len(xb)], device=device)
        dist.all_reduce(running)
        if rank == 0:
            print(f"[rank 0/{world_size}] epoch {epoch} train_loss={running[0] / running[1]:.5f}", flush=True)
            os.makedirs("checkpoints", exist_ok=True)
            torch.save(model.module.state_dict(), f"checkpoints/checkpoint_{epoch}.pth")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
