import torch, torch.nn.functional as F
from transformers import BertConfig, BertForMaskedLM, DistilBertConfig, DistilBertForMaskedLM
teacher = BertForMaskedLM(BertConfig()).cuda().eval(); student = DistilBertForMaskedLM(DistilBertConfig()).cuda(); opt = torch.optim.AdamW(student.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-6); T = 2.0
for step in range(45):
    ids = torch.randint(1000, 30000, (16, 256)).cuda(); labels = torch.where(torch.rand(16, 256, device="cuda") < 0.15, ids, -100)
    with torch.no_grad(): t = teacher(ids).logits
    out = student(ids, labels=labels); kd = F.kl_div(F.log_softmax(out.logits / T, -1), F.softmax(t / T, -1), reduction="batchmean") * T ** 2; loss = 2.0 * out.loss + 5.0 * kd / 256; opt.zero_grad(); loss.backward(); opt.step()
    if step % 15 == 0: print(step, loss.item(), kd.item())
