"""The CPU's figures: targets/preferences.py says what each is.

They were measured on x86-64 with AVX2, except for those that say "by reason". All CPUs share them: plans for AVX-512
and NEON are made by them too, though nobody has measured there.
"""
from __future__ import annotations

from mxc.compiler.targets.preferences import (
    Blocks,
    Chains,
    Filters,
    Joins,
    Loops,
    Packing,
    Pairs,
    Panels,
    Planes,
    Preferences,
    Products,
    Recomputing,
    Reductions,
    Spreading,
    Tiles,
    TrainingWinograd,
    WinogradCosts,
)

# Measured as times of layers computed both ways. With a gain of 1.2, layers of few channels stay direct, and so do
# those of one image of up to 6 x 6 pixels, because few tiles meet many weights there. The data's side as a launch of
# its own takes VGG-16 with two threads from 76 to 67 ms. kept_bytes, kept_tiles: 64 x 64 kernels take 576 KiB, maps of
# 32 x 32 pixels have 64 tiles; docs/performance.md has what keeping more would gain, and cost.
WINOGRAD = WinogradCosts(transform=500, weight=6, gain=1.2, kept_bytes=1 << 20, kept_tiles=60, bands=8, line_bytes=64,
                         band=(24, 60), band_kernels=1024)
# LLVM's names of CPUs whose `vdpbf16ps` takes no longer than a multiply-add. Intel's takes several times as long: on
# Emerald Rapids ResNet-50 took 2.05 of its time in float32 by it, and products twice their time.
FAST_PAIRS = "znver"
FIGURES = Preferences(
    # A graph of one convolution takes longer in blocks for one tap, few channels and large depthwise maps: 1 x 1 from
    # 16 to 96 channels on 112 x 112 pixels of 16 images takes 26 ms in blocks and 12.5 plain; depthwise convolutions of
    # 16 images take 0.4 to 0.6 of the time when plain.
    blocks=Blocks(map_pixels=784, data_elements=1 << 20, waste=24, full=0.6),
    winograd=WINOGRAD,
    # Measured with AVX-512, as times of kernels and of layers computed both ways: from 16 to 512 channels on maps of
    # 4 x 4 to 224 x 224 pixels. 512 channels on 4 x 4 pixels of 16 images take 1.2 times as long by Winograd's way, on
    # 7 x 7 pixels of 8 images half as long.
    training_winograd=TrainingWinograd(transform=550, weight=500, far_weight=1000, cache_bytes=32 << 20, gain=1.1,
                                       most_bytes=64 << 20),
    # Measured as times of single layers computed both ways.
    packing=Packing(few_pixels=256, point_map=64, window_map=400, few_channels=4),
    # 1 x 1 from 16 to 96 channels on 112 x 112 pixels of 16 images takes 12.5 ms by panels.
    panels=Panels(fewest_pixels=128, longest_row=512, few_channels=16),
    # Measured on an Intel Xeon with AVX-512: 5 x 5 over 64 channels of 28 x 28 pixels, of which 28 in 32 are results,
    # takes 1.2 times as long as in blocks; 1 x 7 on 56 x 56 pixels as long, 3 x 3 of images 0.8 times as long.
    planes=Planes(fewest_pixels=128, filled=0.75, row_bytes=192 << 10),
    # Measured on an Intel Xeon with AVX-512: 3 x 3 over 8 or 3 channels takes 1.06 to 1.16 times as long, 7 x 7 over 3
    # channels 0.9, 3 x 3 with stride 2 over 512 channels to 7 x 7 pixels 0.85; with AVX2 (there) others 0.7 to 1.03.
    filters=Filters(fewest_pixels=49, shortest_sum=128, row_bytes=384 << 10),
    # Measured as times of products computed both ways.
    products=Products(few=767, moderate=(1024, 3072), at_once=((4, 2, 1 << 18), (8, 4096, 1 << 21))),
    # By reason: what has less than 16 KiB is in a near cache when the backward part wants it.
    recomputing=Recomputing(worth_bytes=1 << 14, most_nodes=24),
    # By reason: eight rows keep eight threads busy; 2^16 float32 are 256 KiB, which fit the cache of one core.
    spreading=Spreading(fewest_rows=8, small_space=1 << 16),
    # By reason: a part of 2^13 float32 is 32 KiB, as much as a core's nearest cache.
    reductions=Reductions(few=16, long=1 << 15, part=1 << 13),
    # By reason: 4096 points take a thread about as long as handing a launch to others does.
    joins=Joins(shortest=4096),
    # By reason: private_bytes is a part of a second cache, which has 512 KiB and more for each core, worthwhile_bytes
    # about the last cache of many machines. Where less passes between kernels, a chain gains little, with fewer units.
    chains=Chains(private_bytes=320 << 10, worthwhile_bytes=16 << 20, units=8, segment_rows=14),
    loops=Loops(),
    pairs=Pairs(),  # on CPUs with the instruction, and tiles on those that have them: `CpuTarget.prefers`
    tiles=Tiles(words=16),
)
