"""Direct preference optimisation of a 0.5B Llama in bf16 against a frozen copy, with gradient checkpointing."""
import copy
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM, get_constant_schedule_with_warmup


class Preferences(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        prompt = torch.randint(5, 32000, (128,), generator=g)
        chosen, rejected = torch.randint(5, 32000, (2, 384), generator=g)
        mask = torch.cat([torch.zeros(128), torch.ones(384)]).bool()
        return {"chosen": torch.cat([prompt, chosen]), "rejected": torch.cat([prompt, rejected]), "mask": mask}


def logps(model, ids, mask):
    logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[:, :-1]
    labels, mask = ids[:, 1:], mask[:, 1:]
    each = torch.gather(logits.float().log_softmax(-1), 2, labels.unsqueeze(2)).squeeze(2)
    return (each * mask).sum(-1)


config = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=24, num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=2048)
policy = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
reference = copy.deepcopy(policy).eval().requires_grad_(False)
policy.gradient_checkpointing_enable()
policy.train()
optimizer = torch.optim.AdamW(policy.parameters(), lr=5e-7, weight_decay=0.0)
scheduler = get_constant_schedule_with_warmup(optimizer, 10)
beta = 0.1
for step, batch in enumerate(DataLoader(Preferences(), batch_size=4, shuffle=True)):
    ids = torch.cat([batch["chosen"], batch["rejected"]]).cuda()
    mask = batch["mask"].repeat(2, 1).cuda()
    with torch.no_grad():
        ref_c, ref_r = logps(reference, ids, mask).chunk(2)
    pol_c, pol_r = logps(policy, ids, mask).chunk(2)
    rewards_c, rewards_r = beta * (pol_c - ref_c), beta * (pol_r - ref_r)
    loss = -F.logsigmoid(rewards_c - rewards_r).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 10 == 0:
        accuracy = (rewards_c > rewards_r).float().mean().item()
        print({"loss": round(loss.item(), 4), "accuracy": accuracy, "margin": (rewards_c - rewards_r).mean().item()})
