import torch, torchvision
from torch.utils.data import DataLoader, Dataset
class Clips(Dataset):
    def __len__(self): return 400
    def __getitem__(self, i): return torch.rand(3, 16, 112, 112), i % 51
if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu"); model = torchvision.models.video.r3d_18(weights=None, num_classes=51).to(device); loader = DataLoader(Clips(), batch_size=8, shuffle=True, num_workers=2, pin_memory=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4); criterion = torch.nn.CrossEntropyLoss(); correct = total = 0
    for i, (clip, label) in enumerate(loader):
        clip, label = clip.to(device, non_blocking=True), label.to(device, non_blocking=True); out = model(clip); loss = criterion(out, label); optimizer.zero_grad(); loss.backward(); optimizer.step()
        correct += (out.argmax(1) == label).sum().item(); total += len(label)
        if i % 10 == 0: print(f"[{i}] loss {loss.item():.3f} acc {correct / total:.3f}")
