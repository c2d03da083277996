import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration
config = WhisperConfig(d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536); model = WhisperForConditionalGeneration(config).to("cuda").train(); opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(40):
    features, labels = torch.randn(8, 80, 3000), torch.randint(0, 50000, (8, 100))
    with torch.autocast("cuda", dtype=torch.float16): loss = model(input_features=features.to("cuda"), labels=labels.to("cuda")).loss
    loss.backward(); opt.step(); opt.zero_grad(); print(step, loss.item())
