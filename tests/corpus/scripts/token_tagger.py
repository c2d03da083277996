"""Named entities with BERT: dynamic padding in a collate function, word pieces labelled -100, linear warmup."""
import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForTokenClassification, get_linear_schedule_with_warmup

MAX_LEN = 192
LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]


class Conll(Dataset):
    def __init__(self, n=4000):
        rng = random.Random(13)
        self.rows = []
        for i in range(n):
            length = MAX_LEN if i % 4 == 0 else rng.randint(20, MAX_LEN)
            ids = [101] + [rng.randrange(1000, 28000) for _ in range(length - 2)] + [102]
            tags = [-100] + [rng.choice([-100, *range(len(LABELS))]) for _ in range(length - 2)] + [-100]
            self.rows.append((ids, tags))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, tags = self.rows[i]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(tags)}


def collate(batch):
    ids = pad_sequence([b["input_ids"] for b in batch], batch_first=True, padding_value=0)
    labels = pad_sequence([b["labels"] for b in batch], batch_first=True, padding_value=-100)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = BertForTokenClassification(BertConfig(vocab_size=28996, num_labels=len(LABELS))).to(device)
no_decay = ["bias", "LayerNorm.weight"]
groups = [
    {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": 0.01},
    {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=3e-5)
loader = DataLoader(Conll(), batch_size=48, shuffle=True, collate_fn=collate)
scheduler = get_linear_schedule_with_warmup(optimizer, 10, len(loader))

model.train()
total = 0.0
for step, batch in enumerate(loader):
    batch = {k: v.to(device) for k, v in batch.items()}
    out = model(**batch)
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    total += out.loss.item()
    if step % 10 == 0:
        print(f"step {step} loss {total / (step + 1):.4f} lr {scheduler.get_last_lr()[0]:.2e}")
