"""Which models the corpus builds: small configs for transformers, models of timm, and a few that always run."""

from typing import Any

TORCHVISION_QUICK = ("regnet_y_400mf", "fasterrcnn_mobilenet_v3_large_320_fpn", "lraspp_mobilenet_v3_large")
TIMM = (
    "vit_tiny_patch16_224", "resnet26d", "efficientnet_lite0", "mixer_s32_224", "convnext_atto",
    "swin_tiny_patch4_window7_224",
    "deit_tiny_patch16_224", "mobilenetv3_small_100", "regnetx_002", "ghostnet_100", "levit_128s", "poolformer_s12",
    "maxvit_rmlp_nano_rw_256", "edgenext_xx_small", "mobilevit_xxs", "coatnet_nano_rw_224", "res2net50_26w_4s",
    "seresnet50",
    "xcit_nano_12_p16_224", "beit_base_patch16_224", "dm_nfnet_f0", "repvgg_a0", "hrnet_w18_small", "crossvit_tiny_240",
    "eca_nfnet_l0", "pit_ti_224", "gmlp_ti16_224", "resmlp_12_224", "tnt_s_patch16_224", "visformer_tiny",
)  # fmt: skip

_PLAIN: dict[str, Any] = {
    "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
_GROUPED = {**_PLAIN, "num_key_value_heads": 2}
_HEAD = {**_GROUPED, "head_dim": 16}
_EXPERTS = {**_HEAD, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
_GPT = {"vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4}
_T5 = {
    "vocab_size": 256, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
_BART = {
    "vocab_size": 256, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_position_embeddings": 64,
    "pad_token_id": 0, "decoder_start_token_id": 0,
}  # fmt: skip
_IMAGE = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64,
    "patch_size": 16,
}  # fmt: skip
_STAGES = {"hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 1, 1]}
_WINDOWS = {"image_size": 64, "embed_dim": 24, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}
_SOUND = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "conv_dim": [32] * 7,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "vocab_size": 32,
}  # fmt: skip

_CAUSAL: dict[str, Any] = {
    "Llama": _GROUPED, "Mistral": _GROUPED, "Mixtral": {**_GROUPED, "num_local_experts": 4}, "Qwen2": _GROUPED,
    "Qwen3": _HEAD, "Qwen2Moe": {**_EXPERTS, "shared_expert_intermediate_size": 64}, "Qwen3Moe": _EXPERTS,
    "Gemma": _HEAD,
    "Gemma2": _HEAD, "Phi": _PLAIN, "Phi3": {**_GROUPED, "pad_token_id": 0}, "StableLm": _GROUPED, "Olmo": _GROUPED,
    "Olmo2": _GROUPED, "Cohere": _GROUPED, "Granite": _GROUPED, "Starcoder2": _GROUPED, "GPTNeoX": _PLAIN,
    "Falcon": {k: v for k, v in _PLAIN.items() if k != "intermediate_size"}, "Bloom": {**_GPT, "hidden_size": 64},
    "GPTJ": {**_GPT, "rotary_dim": 8}, "GPTBigCode": _GPT, "CodeGen": {**_GPT, "rotary_dim": 8},
    "OPT": {**_PLAIN, "ffn_dim": 128, "word_embed_proj_dim": 64},
    "Mpt": {"vocab_size": 256, "d_model": 64, "n_layers": 2, "n_heads": 4},
    "Mamba": {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2}, "Persimmon": _PLAIN,
    "SmolLM3": {**_GROUPED, "pad_token_id": 0},
    "Glm": {**_HEAD, "pad_token_id": 0}, "Nemotron": _GROUPED, "GptOss": {
        **_HEAD, "num_local_experts": 4, "num_experts_per_tok": 2,
        "layer_types": ["sliding_attention", "full_attention"],
    },
}  # fmt: skip
_MASKED: dict[str, Any] = {
    "Bert": _PLAIN, "Roberta": _PLAIN,
    "DistilBert": {"vocab_size": 256, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128},
    "Albert": {**_PLAIN, "embedding_size": 32}, "Electra": _PLAIN, "MPNet": _PLAIN, "XLMRoberta": _PLAIN,
    "Camembert": _PLAIN,
    "Deberta": _PLAIN, "DebertaV2": {
        **_PLAIN, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16,
    },
    "ModernBert": {**_PLAIN, "pad_token_id": 0}, "RoFormer": _PLAIN, "ConvBert": _PLAIN,
    "SqueezeBert": {**_PLAIN, "embedding_size": 64},
}  # fmt: skip
_TRANSLATED: dict[str, Any] = {
    "T5ForConditionalGeneration": _T5, "MT5ForConditionalGeneration": _T5, "BartForConditionalGeneration": _BART,
    "PegasusForConditionalGeneration": _BART, "MBartForConditionalGeneration": _BART, "MarianMTModel": _BART,
}  # fmt: skip
_IMAGES: dict[str, Any] = {
    "ViT": _IMAGE, "DeiT": _IMAGE, "Beit": _IMAGE, "Dinov2": _IMAGE, "Swin": _WINDOWS, "Swinv2": _WINDOWS,
    "ConvNext": _STAGES, "ConvNextV2": _STAGES, "ResNet": {**_STAGES, "embedding_size": 16},
    "RegNet": {**_STAGES, "embedding_size": 16, "groups_width": 8}, "MobileNetV2": {},
}  # fmt: skip

_TOKENS = "    x = torch.randint(2, 256, (4, 32)).cuda()\n"
_NEXT = _TOKENS + "    loss = model(input_ids=x, labels=x).loss\n"
_PADDED = "    mask = torch.ones(4, 32, dtype=torch.long)\n    mask[:, 28:] = 0\n    mask = mask.cuda()\n"
_PICTURES = "    x, y = torch.rand(4, 3, 64, 64).cuda(), torch.randint(0, 2, (4,)).cuda()\n"
TRANSFORMERS: dict[str, tuple[dict[str, Any], str]] = {
    **{f"{name}ForCausalLM": (sizes, _NEXT) for name, sizes in _CAUSAL.items()},
    "GPT2LMHeadModel": (_GPT, _NEXT),
    **{
        f"{name}ForMaskedLM": (
            sizes,
            _TOKENS + _PADDED + "    loss = model(input_ids=x, attention_mask=mask, labels=x).loss\n",
        )
        for name, sizes in _MASKED.items()
    },
    **{
        name: (sizes, _TOKENS + "    loss = model(input_ids=x, labels=x[:, :16].contiguous()).loss\n")
        for name, sizes in _TRANSLATED.items()
    },
    **{
        f"{name}ForImageClassification": (sizes, _PICTURES + "    loss = model(pixel_values=x, labels=y).loss\n")
        for name, sizes in _IMAGES.items()
    },
    "Wav2Vec2ForCTC": (
        _SOUND,
        "    x, y = torch.randn(4, 16000).cuda(), torch.randint(1, 30, (4, 10)).cuda()\n"
        "    loss = model(input_values=x, labels=y).loss\n",
    ),
    "CLIPModel": (
        {"text_config": {**_PLAIN, "max_position_embeddings": 32}, "vision_config": _IMAGE, "projection_dim": 32},
        _TOKENS + _PICTURES.replace("x, y", "p, y") + "    loss = model(x, p, return_loss=True).loss\n",
    ),
    "LlamaForSequenceClassification": (
        {**_GROUPED, "pad_token_id": 0},
        _TOKENS + "    loss = model(input_ids=x, labels=torch.randint(0, 2, (4,)).cuda()).loss\n",
    ),
    "DetrForObjectDetection": (
        {
            "use_timm_backbone": False, "backbone": None, "use_pretrained_backbone": False, "d_model": 64,
            "backbone_config": {"model_type": "resnet", "embedding_size": 16, **_STAGES, "out_features": ["stage4"]},
            "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 10,
        },
        "    x = torch.rand(4, 3, 96, 96).cuda()\n"
        "    y = [{'class_labels': torch.tensor([1, 1]).cuda(), 'boxes': torch.rand(2, 4).cuda()} for _ in range(4)]\n"
        "    loss = model(pixel_values=x, labels=y).loss\n",
    ),
}  # fmt: skip
