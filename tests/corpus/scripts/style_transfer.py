"""Neural style transfer (Gatys et al.) with L-BFGS on the image."""
import torch, torch.nn as nn, torch.nn.functional as F, torch.optim as optim
from torchvision.models import vgg19
device = torch.device("cuda" if torch.cuda.is_available() else "cpu"); imsize = 512 if torch.cuda.is_available() else 128
content_img = torch.rand(1, 3, imsize, imsize).to(device, torch.float); style_img = torch.rand(1, 3, imsize, imsize).to(device, torch.float)
cnn = vgg19(weights=None).features.to(device).eval()
for p in cnn.parameters(): p.requires_grad_(False)
class Normalization(nn.Module):
    def __init__(self, mean, std): super().__init__(); self.mean = mean.view(-1, 1, 1); self.std = std.view(-1, 1, 1)
    def forward(self, img): return (img - self.mean) / self.std
def gram(x): a, b, c, d = x.size(); f = x.view(a * b, c * d); return torch.mm(f, f.t()).div(a * b * c * d)
class ContentLoss(nn.Module):
    def __init__(self, t): super().__init__(); self.target = t.detach()
    def forward(self, x): self.loss = F.mse_loss(x, self.target); return x
class StyleLoss(nn.Module):
    def __init__(self, t): super().__init__(); self.target = gram(t).detach()
    def forward(self, x): self.loss = F.mse_loss(gram(x), self.target); return x
def build():
    model = nn.Sequential(Normalization(torch.tensor([0.485, 0.456, 0.406], device=device), torch.tensor([0.229, 0.224, 0.225], device=device))); contents, styles = [], []; i = 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d): i += 1; name = f"conv_{i}"
        elif isinstance(layer, nn.ReLU): name = f"relu_{i}"; layer = nn.ReLU(inplace=False)
        else: name = f"pool_{i}"
        model.add_module(name, layer)
        if name == "conv_4": l = ContentLoss(model(content_img)); model.add_module(f"content_{i}", l); contents.append(l)
        if name in ("conv_1", "conv_2", "conv_3", "conv_4", "conv_5"): l = StyleLoss(model(style_img)); model.add_module(f"style_{i}", l); styles.append(l)
        if name == "conv_5": break
    return model, styles, contents
input_img = content_img.clone(); model, styles, contents = build(); input_img.requires_grad_(True); model.eval()
optimizer = optim.LBFGS([input_img]); run = [0]
while run[0] <= 700:
    def closure():
        with torch.no_grad(): input_img.clamp_(0, 1)
        optimizer.zero_grad(); model(input_img); s = c = 0
        for l in styles: s += l.loss
        for l in contents: c += l.loss
        loss = 1e6 * s + c; loss.backward(); run[0] += 1
        if run[0] % 50 == 0: print("run {}: style {:4f} content {:4f}".format(run, (1e6 * s).item(), c.item()))
        return 1e6 * s + c
    optimizer.step(closure)
