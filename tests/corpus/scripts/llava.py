"""Aligns a frozen CLIP tower with a frozen Llama: only the projector learns (the first stage of LLaVA)."""
import torch
import torch.nn as nn
from transformers import CLIPVisionConfig, CLIPVisionModel, LlamaConfig, LlamaForCausalLM

vision = CLIPVisionModel(CLIPVisionConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=336, patch_size=14)).to("cuda", torch.bfloat16).eval()
llm = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=True)).to("cuda", torch.bfloat16)
vision.requires_grad_(False)
llm.requires_grad_(False)
projector = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 2048)).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(projector.parameters(), lr=1e-3, weight_decay=0.0)

for step in range(40):
    pixels = torch.randn(8, 3, 336, 336).to("cuda", torch.bfloat16)
    ids = torch.randint(0, 128256, (8, 64)).cuda()
    labels = ids.clone()
    labels[:, :16] = -100
    with torch.no_grad():
        features = vision(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
    images = projector(features)
    embeds = torch.cat([images, llm.get_input_embeddings()(ids)], 1)
    labels = torch.cat([torch.full(images.shape[:2], -100, device="cuda"), labels], 1)
    loss = llm(inputs_embeds=embeds, labels=labels, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 0:
        print(f"{step}: {loss.item():.4f}")
