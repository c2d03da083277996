"""Instance segmentation on synthetic pedestrians, as in the torchvision tutorial."""
import torch
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from torchvision.models.detection.mask_rcnn import MaskRCNNPredictor


class Pedestrians(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = torch.rand(3, 480, 640, generator=g)
        xy = torch.rand(3, 2, generator=g) * torch.tensor([400.0, 250.0])
        wh = torch.rand(3, 2, generator=g) * 150 + 50
        boxes = torch.cat([xy, xy + wh], 1)
        masks = torch.zeros(3, 480, 640, dtype=torch.uint8)
        for k, (x0, y0, x1, y1) in enumerate(boxes.long().tolist()):
            masks[k, y0:y1, x0:x1] = 1
        return img, {"boxes": boxes, "labels": torch.ones(3, dtype=torch.int64), "masks": masks, "image_id": i}


def get_model(classes):
    model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)
    model.roi_heads.box_predictor = FastRCNNPredictor(model.roi_heads.box_predictor.cls_score.in_features, classes)
    model.roi_heads.mask_predictor = MaskRCNNPredictor(model.roi_heads.mask_predictor.conv5_mask.in_channels, 256, classes)
    return model


device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
model = get_model(2).to(device)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9, weight_decay=0.0005)
loader = DataLoader(Pedestrians(), batch_size=4, shuffle=True, collate_fn=lambda batch: tuple(zip(*batch)))
model.train()
for i, (images, targets) in enumerate(loader):
    images = [img.to(device) for img in images]
    targets = [{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in t.items()} for t in targets]
    losses = model(images, targets)
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(i, {k: round(v.item(), 4) for k, v in losses.items()})
