import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration, get_scheduler
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = T5ForConditionalGeneration(T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0, dropout_rate=0.1))
data = [{"input_ids": torch.randint(2, 32000, (256,)), "attention_mask": torch.ones(256, dtype=torch.long), "labels": torch.randint(2, 32000, (64,))} for _ in range(16 * 60)]
loader = DataLoader(data, shuffle=True, batch_size=16); optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4); scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=10, num_training_steps=200)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
for epoch in range(2):
    model.train(); total = 0
    for step, batch in enumerate(loader):
        with accelerator.accumulate(model):
            loss = model(**batch).loss; total += loss.detach().float(); accelerator.backward(loss)
            if accelerator.sync_gradients: accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step(); scheduler.step(); optimizer.zero_grad()
        if step % 10 == 0: accelerator.print(f"epoch {epoch} step {step} loss {total / (step + 1):.3f}")
