import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
config = Qwen2Config(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True); model = Qwen2ForCausalLM(config).to(dtype=torch.bfloat16, device="cuda"); opt = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True); model.train()
for step in range(40):
    ids = torch.randint(0, 150000, (2, 1024), device="cuda"); labels = ids.clone(); labels[:, :256] = -100; loss = model(input_ids=ids, labels=labels, use_cache=False).loss; loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); opt.zero_grad(set_to_none=True)
    if step % 10 == 0: print(loss.item())
