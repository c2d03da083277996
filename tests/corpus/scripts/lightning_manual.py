import torch, torch.nn as nn, torch.nn.functional as F, pytorch_lightning as pl
from torch.utils.data import DataLoader, TensorDataset
class Gen(nn.Module):
    def __init__(s, z=100, c=3, w=64): super().__init__(); s.net = nn.Sequential(nn.ConvTranspose2d(z, 8 * w, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * w), nn.ReLU(True), nn.ConvTranspose2d(8 * w, 4 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * w), nn.ReLU(True), nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * w), nn.ReLU(True), nn.ConvTranspose2d(2 * w, c, 4, 2, 1), nn.Tanh())
    def forward(s, z): return s.net(z[:, :, None, None])
class Disc(nn.Module):
    def __init__(s, c=3, w=64): super().__init__(); s.net = nn.Sequential(*[m for i, o in ((c, w), (w, 2 * w), (2 * w, 4 * w)) for m in (nn.utils.spectral_norm(nn.Conv2d(i, o, 4, 2, 1)), nn.LeakyReLU(0.2))], nn.Conv2d(4 * w, 1, 4))
    def forward(s, x): return s.net(x).flatten(1).mean(1)
class SNGAN(pl.LightningModule):
    def __init__(self): super().__init__(); self.save_hyperparameters(); self.automatic_optimization = False; self.G, self.D = Gen(), Disc()
    def forward(self, z): return self.G(z)
    def training_step(self, batch, i):
        og, od = self.optimizers(); x, = batch; z = torch.randn(x.size(0), 100).type_as(x)
        self.toggle_optimizer(od); d = F.relu(1 - self.D(x)).mean() + F.relu(1 + self.D(self.G(z).detach())).mean(); od.zero_grad(); self.manual_backward(d); od.step(); self.untoggle_optimizer(od)
        self.toggle_optimizer(og); g = -self.D(self(z)).mean(); og.zero_grad(); self.manual_backward(g); self.clip_gradients(og, gradient_clip_val=5.0, gradient_clip_algorithm="norm"); og.step(); self.untoggle_optimizer(og)
        self.log_dict({"g_loss": g, "d_loss": d}, prog_bar=True)
    def configure_optimizers(self): return [torch.optim.Adam(self.G.parameters(), 2e-4, (0.5, 0.999)), torch.optim.Adam(self.D.parameters(), 2e-4, (0.5, 0.999))], []
if __name__ == "__main__":
    pl.seed_everything(7); loader = DataLoader(TensorDataset(torch.rand(128 * 30, 3, 32, 32) * 2 - 1), batch_size=128, shuffle=True, num_workers=2, persistent_workers=True)
    pl.Trainer(accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, precision="16-mixed", log_every_n_steps=5).fit(SNGAN(), loader)
