import os, functools, torch, torch.nn as nn, torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy, CPUOffload
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy, size_based_auto_wrap_policy
class Block(nn.Module):
    def __init__(s, d): super().__init__(); s.l = nn.TransformerEncoderLayer(d, 4, 4 * d, batch_first=True)
    def forward(s, x): return s.l(x)
class Net(nn.Module):
    def __init__(s, d=64): super().__init__(); s.e = nn.Embedding(100, d); s.b = nn.ModuleList([Block(d) for _ in range(2)]); s.h = nn.Linear(d, 100)
    def forward(s, x):
        x = s.e(x)
        for b in s.b: x = b(x)
        return s.h(x)
rank = int(os.environ['RANK']); local_rank = int(os.environ['LOCAL_RANK']); world = int(os.environ['WORLD_SIZE'])
dist.init_process_group('nccl'); torch.cuda.set_device(local_rank)
policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
model = FSDP(Net(), auto_wrap_policy=policy, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16), device_id=torch.cuda.current_device(), sharding_strategy=ShardingStrategy.FULL_SHARD)
opt = torch.optim.AdamW(model.parameters(), 1e-4)
for i in range(5):
    x = torch.randint(0, 100, (8, 32)).to(local_rank); loss = nn.functional.cross_entropy(model(x).view(-1, 100), x.view(-1)); opt.zero_grad(); loss.backward(); model.clip_grad_norm_(1.0); opt.step()
    if rank == 0: print(loss.item())
dist.destroy_process_group()
