import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
class Blocks(torch.utils.data.Dataset):
    def __init__(self, n=4096, length=512): self.data = torch.randint(0, 50257, (n // 16, length)); self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): x = self.data[i % len(self.data)]; return {"input_ids": x, "labels": x}
model = GPT2LMHeadModel(GPT2Config())
args = TrainingArguments("out", per_device_train_batch_size=8, gradient_accumulation_steps=4, max_steps=45, learning_rate=5e-5, warmup_steps=10, lr_scheduler_type="cosine", bf16=True, logging_steps=10, save_strategy="no", report_to="none", weight_decay=0.01)
Trainer(model=model, args=args, train_dataset=Blocks()).train()
