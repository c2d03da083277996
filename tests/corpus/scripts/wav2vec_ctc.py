import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC
model = Wav2Vec2ForCTC(Wav2Vec2Config(vocab_size=32, apply_spec_augment=False, ctc_loss_reduction="mean", layerdrop=0.0)).cuda(); model.freeze_feature_encoder(); opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for step in range(40):
    x, labels = torch.randn(8, 16000 * 6).cuda(), torch.randint(1, 32, (8, 60)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16): loss = model(x, labels=labels).loss
    loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); opt.zero_grad()
print(loss.item())
