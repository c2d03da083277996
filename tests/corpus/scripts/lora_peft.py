import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM, DataCollatorForLanguageModeling
config = LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4, vocab_size=32000)
model = LlamaForCausalLM(config).to(torch.bfloat16).cuda(); model.gradient_checkpointing_enable(); model.enable_input_require_grads()
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")); model.print_trainable_parameters()
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
for i in range(40):
    ids = torch.randint(0, 32000, (4, 1024)).cuda(); loss = model(input_ids=ids, labels=ids).loss; loss.backward(); opt.step(); opt.zero_grad(); print(i, loss.item())
