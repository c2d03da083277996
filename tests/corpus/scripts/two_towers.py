import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torchvision.models import resnet50
class TextEncoder(nn.Module):
    def __init__(self, vocab=49408, width=512, ctx=77, layers=12, heads=8, out=512):
        super().__init__(); self.tok = nn.Embedding(vocab, width); self.pos = nn.Parameter(torch.empty(ctx, width).normal_(std=0.01))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True); self.tr = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.ln = nn.LayerNorm(width); self.proj = nn.Parameter(torch.randn(width, out) * width ** -0.5); self.register_buffer("mask", torch.full((ctx, ctx), float("-inf")).triu_(1), persistent=False)
    def forward(self, t): x = self.ln(self.tr(self.tok(t) + self.pos, mask=self.mask)); return x[torch.arange(x.shape[0]), t.argmax(dim=-1)] @ self.proj
class TwoTowers(nn.Module):
    def __init__(self, out=512): super().__init__(); self.image = resnet50(num_classes=out); self.text = TextEncoder(out=out); self.scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))
    def forward(self, i, t): a = F.normalize(self.image(i), dim=-1); b = F.normalize(self.text(t), dim=-1); l = self.scale.exp().clamp(max=100) * a @ b.t(); return l, l.t()
device = "cuda" if torch.cuda.is_available() else "cpu"; N = 128; model = TwoTowers().to(device)
no = lambda n, p: p.ndim < 2 or "bn" in n or "ln" in n or "bias" in n or "scale" in n
opt = torch.optim.AdamW([{"params": [p for n, p in model.named_parameters() if no(n, p)], "weight_decay": 0.0}, {"params": [p for n, p in model.named_parameters() if not no(n, p)], "weight_decay": 0.2}], lr=5e-4, betas=(0.9, 0.98), eps=1e-6)
truth = torch.arange(N, device=device)
for step in range(40):
    img = torch.randn(N, 3, 224, 224, device=device); txt = torch.randint(1, 49408, (N, 77), device=device)
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16): li, lt = model(img, txt); loss = (F.cross_entropy(li, truth) + F.cross_entropy(lt, truth)) / 2
    opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
    with torch.no_grad(): model.scale.clamp_(0, 4.6052)
    acc = (li.argmax(-1) == truth).float().mean().item(); print(f"{step} {loss.item():.4f} acc {acc:.1%} temp {1 / model.scale.exp().item():.3f}")
