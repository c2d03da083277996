import argparse, torch, torch.nn as nn, torchvision.models as models
parser = argparse.ArgumentParser(); parser.add_argument("--batch", type=int, default=128); parser.add_argument("--lr", type=float, default=0.1); args = parser.parse_args()
torch.backends.cudnn.benchmark = True
model = models.resnet50().cuda().to(memory_format=torch.channels_last); opt = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4, nesterov=True); scaler = torch.cuda.amp.GradScaler(); crit = nn.CrossEntropyLoss().cuda()
correct = 0
for i in range(45):
    images = torch.randn(args.batch, 3, 224, 224).cuda(non_blocking=True).contiguous(memory_format=torch.channels_last); target = torch.randint(0, 1000, (args.batch,)).cuda(non_blocking=True)
    with torch.cuda.amp.autocast(): output = model(images); loss = crit(output, target)
    opt.zero_grad(); scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); correct += (output.argmax(1) == target).sum().item()
print("acc", correct / (45 * args.batch))
