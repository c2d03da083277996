import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import RobertaConfig, RobertaForSequenceClassification, get_linear_schedule_with_warmup
device = torch.device("cuda"); model = RobertaForSequenceClassification(RobertaConfig(vocab_size=50265, max_position_embeddings=514, num_labels=3)).to(device)
data = TensorDataset(torch.randint(5, 50000, (1600, 128)), torch.ones(1600, 128, dtype=torch.long), torch.randint(0, 3, (1600,))); loader = DataLoader(data, batch_size=32, shuffle=True, pin_memory=True)
opt = torch.optim.AdamW(model.parameters(), lr=2e-5, eps=1e-8); sched = get_linear_schedule_with_warmup(opt, 10, len(loader)); scaler = torch.amp.GradScaler("cuda"); model.train(); running = 0.0
for step, (ids, mask, y) in enumerate(loader):
    ids, mask, y = ids.to(device, non_blocking=True), mask.to(device, non_blocking=True), y.to(device, non_blocking=True); opt.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16): out = model(input_ids=ids, attention_mask=mask, labels=y)
    scaler.scale(out.loss).backward(); scaler.unscale_(opt); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); scaler.step(opt); scaler.update(); sched.step(); running += out.loss.item()
    if step % 20 == 0: print(f"step {step} loss {running / (step + 1):.4f}")
