import torch, torchvision
from torchvision.models.detection import fasterrcnn_resnet50_fpn
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
class Boxes(torch.utils.data.Dataset):
    def __len__(self): return 200
    def __getitem__(self, i):
        img = torch.rand(3, 480, 640); n = 3
        xy = torch.rand(n, 2) * torch.tensor([400.0, 300.0]); wh = torch.rand(n, 2) * 100 + 20
        return img, {"boxes": torch.cat([xy, xy + wh], 1), "labels": torch.randint(1, 5, (n,)), "image_id": torch.tensor([i])}
def collate(b): return tuple(zip(*b))
def get_model(classes):
    model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None); model.roi_heads.box_predictor = FastRCNNPredictor(model.roi_heads.box_predictor.cls_score.in_features, classes); return model
def train_one_epoch(model, opt, loader, device):
    model.train()
    for i, (images, targets) in enumerate(loader):
        images = list(im.to(device) for im in images); targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        losses = model(images, targets); total = sum(losses.values()); value = total.item()
        if not (value == value): print("Loss is nan, stopping training"); raise SystemExit(1)
        opt.zero_grad(); total.backward(); opt.step()
        if i % 10 == 0: print(i, {k: round(v.item(), 4) for k, v in losses.items()})
if __name__ == "__main__":
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu"); model = get_model(5).to(device)
    loader = torch.utils.data.DataLoader(Boxes(), batch_size=4, shuffle=True, num_workers=4, collate_fn=collate)
    params = [p for p in model.parameters() if p.requires_grad]; opt = torch.optim.SGD(params, lr=1e-4, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.StepLR(opt, 3, 0.1)
    for epoch in range(2): train_one_epoch(model, opt, loader, device); sched.step()
