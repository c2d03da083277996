import os, torch, torch.distributed as dist, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
from torchvision.models import convnext_tiny
class Fake(Dataset):
    def __len__(self): return 64 * 45
    def __getitem__(self, i): g = torch.Generator().manual_seed(i); return torch.randn(3, 224, 224, generator=g), int(torch.randint(1000, (1,), generator=g))
def main():
    os.environ.setdefault("RANK", "0"); os.environ.setdefault("LOCAL_RANK", "0"); os.environ.setdefault("WORLD_SIZE", "1"); os.environ.setdefault("MASTER_ADDR", "127.0.0.1"); os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl"); rank = int(os.environ["LOCAL_RANK"]); torch.cuda.set_device(rank); model = DDP(torch.nn.SyncBatchNorm.convert_sync_batchnorm(convnext_tiny()).cuda(rank), device_ids=[rank], gradient_as_bucket_view=True)
    sampler = DistributedSampler(Fake()); loader = DataLoader(Fake(), 64, sampler=sampler, num_workers=8, pin_memory=True, drop_last=True); opt = torch.optim.AdamW(model.parameters(), lr=1e-3 * dist.get_world_size(), weight_decay=0.05)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            x, y = x.cuda(rank, non_blocking=True), y.cuda(rank, non_blocking=True)
            with torch.amp.autocast("cuda", dtype=torch.bfloat16): loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            opt.zero_grad(); loss.backward(); opt.step(); t = loss.detach().clone(); dist.all_reduce(t)
            if rank == 0: print(epoch, t.item() / dist.get_world_size())
    dist.destroy_process_group()
if __name__ == "__main__": main()
