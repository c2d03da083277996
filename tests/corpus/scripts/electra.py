"""Replaced token detection: a small generator proposes, the discriminator finds what was replaced."""
import torch
import torch.nn.functional as F
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

g = ElectraForMaskedLM(ElectraConfig(embedding_size=768, hidden_size=256, num_attention_heads=4, intermediate_size=1024))
d = ElectraForPreTraining(ElectraConfig(embedding_size=768, hidden_size=768, num_attention_heads=12, intermediate_size=3072))
g.electra.embeddings.word_embeddings.weight = d.electra.embeddings.word_embeddings.weight
device = "cuda"
g.to(device), d.to(device)
params = {id(p): p for m in (g, d) for p in m.parameters()}
opt = torch.optim.Adam(params.values(), lr=2e-4)
MASK = 103
for step in range(50):
    ids = torch.randint(1000, 30522, (64, 128)).to(device)
    masked = torch.rand(ids.shape, device=device) < 0.15
    inputs = torch.where(masked, torch.full_like(ids, MASK), ids)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = g(inputs).logits
        loss_g = F.cross_entropy(logits.float().view(-1, logits.size(-1)), torch.where(masked, ids, -100).view(-1))
        with torch.no_grad():
            gumbel = -torch.log(-torch.log(torch.rand_like(logits.float()) + 1e-9) + 1e-9)
            sampled = (logits.float() + gumbel).argmax(-1)
            fake = torch.where(masked, sampled, ids)
            replaced = (fake != ids).float()
        found = d(fake).logits
    loss = loss_g + 50 * F.binary_cross_entropy_with_logits(found.float(), replaced)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(f"{step} {loss.item():.3f} {((found > 0) == replaced.bool()).float().mean().item():.3f}")
