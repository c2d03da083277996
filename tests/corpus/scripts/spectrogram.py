import torch, torch.nn as nn
class MelNet(nn.Module):
    def __init__(self, n_fft=1024, mels=80, classes=50):
        super().__init__(); self.n_fft = n_fft; self.register_buffer("window", torch.hann_window(n_fft)); self.register_buffer("bank", torch.rand(mels, n_fft // 2 + 1)); chans = [1, 32, 64, 128, 256]
        self.body = nn.Sequential(*[nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.1)) for a, b in zip(chans, chans[1:])]); self.head = nn.Linear(256, classes)
    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, hop_length=256, window=self.window, return_complex=True).abs() ** 2; mel = torch.log(self.bank @ spec + 1e-6); mel = (mel - mel.mean((1, 2), keepdim=True)) / (mel.std((1, 2), keepdim=True) + 1e-5); return self.head(self.body(mel.unsqueeze(1)).mean((2, 3)))
model = MelNet().cuda(); opt = torch.optim.AdamW(model.parameters(), lr=1e-3); sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=60)
for step in range(60):
    wave, label = torch.randn(32, 16000 * 4).cuda(), torch.randint(0, 50, (32,)).cuda(); loss = nn.functional.cross_entropy(model(wave), label); opt.zero_grad(); loss.backward(); opt.step(); sched.step()
print(float(loss))
