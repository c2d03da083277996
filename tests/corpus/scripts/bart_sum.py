import torch
from transformers import BartConfig, BartForConditionalGeneration
model = BartForConditionalGeneration(BartConfig(encoder_layers=6, decoder_layers=6, d_model=768, encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072)).to("cuda"); opt = torch.optim.AdamW(model.parameters(), lr=3e-5); accumulate = 2; model.train()
for step in range(100):
    src, tgt = torch.randint(3, 50000, (8, 512)).to("cuda"), torch.randint(3, 50000, (8, 96)).to("cuda"); mask = torch.ones_like(src)
    with torch.autocast("cuda", dtype=torch.bfloat16): loss = model(input_ids=src, attention_mask=mask, labels=tgt).loss / accumulate
    loss.backward()
    if (step + 1) % accumulate == 0: torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1); opt.step(); opt.zero_grad()
    if step % 20 == 0: print(step, loss.item() * accumulate)
