# In the manner of pytorch/examples imagenet/main.py --dummy: DataParallel, workers, meters, top-k accuracy.
import argparse
import time
from enum import Enum

import torch
import torch.nn as nn
import torch.nn.parallel
import torch.optim
import torch.utils.data
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import Subset

from vision import resnet18

parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--gpu", default=None, type=int)
parser.add_argument("--evaluate", action="store_true")
args = parser.parse_args()


class FakeImages(torch.utils.data.Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError
        torch.manual_seed(index)
        return torch.randn(3, 224, 224), torch.randint(0, 1000, size=(1,), dtype=torch.long)[0].item()


def main():
    model = resnet18()
    if torch.cuda.is_available() and args.gpu is not None:
        torch.cuda.set_device(args.gpu)
        model = model.cuda(args.gpu)
    else:
        model = torch.nn.DataParallel(model).cuda()
    device = torch.device("cuda:{}".format(args.gpu)) if args.gpu is not None else torch.device("cuda")
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    train_dataset, val_dataset = FakeImages(1281167), FakeImages(50000)
    train_loader = torch.utils.data.DataLoader(
        train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=True
    )
    val_loader = torch.utils.data.DataLoader(
        Subset(val_dataset, range(0, 1000)),
        batch_size=args.batch_size,
        num_workers=args.workers,
        pin_memory=True,
    )
    if args.evaluate:
        validate(val_loader, model, criterion)
        return
    best_acc1 = 0
    for epoch in range(0, 90):
        train(train_loader, model, criterion, optimizer, epoch, device)
        acc1 = validate(val_loader, model, criterion)
        scheduler.step()
        best_acc1 = max(acc1, best_acc1)


def train(train_loader, model, criterion, optimizer, epoch, device):
    batch_time, losses = AverageMeter("Time", ":6.3f"), AverageMeter("Loss", ":.4e")
    top1 = AverageMeter("Acc@1", ":6.2f")
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(train_loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1[0], images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_time.update(time.time() - end)
        end = time.time()
        print("\t".join([f"Epoch: [{epoch}]"] + [str(meter) for meter in (batch_time, losses, top1)]))


def validate(val_loader, model, criterion):
    top1 = AverageMeter("Acc@1", ":6.2f", Summary.AVERAGE)
    model.eval()
    with torch.no_grad():
        for images, target in val_loader:
            if torch.cuda.is_available():
                images, target = (
                    images.cuda(args.gpu, non_blocking=True),
                    target.cuda(args.gpu, non_blocking=True),
                )
            output = model(images)
            loss = criterion(output, target)
            top1.update(accuracy(output, target, topk=(1, 5))[0][0], images.size(0))
    print(" *", top1, loss)
    return top1.avg


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter:
    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name, self.fmt, self.summary_type = name, fmt, summary_type
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


if __name__ == "__main__":
    main()
