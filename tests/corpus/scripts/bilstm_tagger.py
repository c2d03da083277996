import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
class Tagger(nn.Module):
    def __init__(self, words=30000, tags=20, d=200, h=400):
        super().__init__(); self.emb = nn.Embedding(words, d, padding_idx=0); self.lstm = nn.LSTM(d, h, num_layers=2, bidirectional=True, batch_first=True, dropout=0.25); self.fc = nn.Linear(2 * h, tags); self.drop = nn.Dropout(0.25)
    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.drop(self.emb(x)), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True); return self.fc(self.drop(out))
model = Tagger().cuda(); opt = torch.optim.AdamW(model.parameters(), lr=2e-3); crit = nn.CrossEntropyLoss(ignore_index=-100)
for step in range(50):
    lengths = torch.full((128,), 60); x = torch.randint(1, 30000, (128, 60)); y = torch.randint(0, 20, (128, 60))
    logits = model(x.cuda(), lengths); loss = crit(logits.reshape(-1, 20), y.cuda().reshape(-1)); opt.zero_grad(); loss.backward(); opt.step()
    if step % 10 == 0: print(step, float(loss))
