"""Projects: they contain instances, images and a network, within a quota."""
