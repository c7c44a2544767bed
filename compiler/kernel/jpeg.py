"""Routines that decode a part of a baseline JPEG (ITU T.81) to the pixels that libjpeg-turbo gives, to the last bit.

They run one after the other on one picture: `jpeg_tables` prepares its Huffman codes, `jpeg_words` takes the stuffed
bytes out of its scan, `jpeg_samples` decodes the blocks and computes the samples of those that are wanted, and
`jpeg_colors` makes red, green and blue of them. runtime/jpeg.py calls them, and says which pictures they take. Whatever
they find to be wrong they say in `status`, and the picture is left to another decoder: damage needs no meaning here.
"""
from __future__ import annotations

from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import abs_, int32, int64, max_, min_, uint32, uint64

LOOKUP = 10  # bits that the first look at a code takes; jpeg_tables and jpeg_samples have it as numbers
CODES = 16 + 256  # bytes of a table of codes: how many there are of each length, and their symbols
SPARE = 400  # words of zeros behind a scan: more than the 6 blocks of 64 numbers of 27 bits that are decoded unchecked


@routine(("codes",), ("table", "longs", "status"), "1")
def jpeg_tables(first, last, codes, table, longs, status):
    """What `jpeg_samples` looks up, of four tables of codes: two for DC, then two for AC.

    table: for each 10 bits of a scan 0 where a code is longer, else its length in bits 0 to 5, in 8 to 15 how many
    zeros come before the number. Where the number's own bits are among the 10, bit 6 is set, the length is of both, and
    bits 16 on are the number; else bit 7 is set, and bits 16 on say how many bits the number has. The end of a block is
    128 zeros. longs: for each length the 16 bits from which on codes are longer, and what added to a code is the place
    of its symbol. status: whether a table is none.
    """
    status[0] = 0
    for t in range(4):
        code = 0
        place = 0
        for i in range(1024):
            table[t * 1024 + i] = int32(0)
        for length in range(1, 17):
            longs[t * 34 + 17 + length] = place - code
            for _ in range(int64(codes[t * 272 + length - 1])):
                symbol = int64(codes[t * 272 + 16 + min_(place, 255)])
                run = symbol >> 4
                size = symbol & 15
                if t < 2:
                    run = int64(0)
                    size = symbol
                    if symbol > 11:
                        status[0] = 1
                        size = int64(11)
                elif size == 0 and run < 15:
                    run = int64(128)
                elif size > 10:
                    status[0] = 1
                    size = int64(10)
                if length <= 10:
                    free = 10 - length
                    for rest in range(1 << free):
                        entry = (size << 16) | (run << 8) | 128 | length
                        if size <= free:
                            number = rest >> (free - size)
                            if size > 0 and number < (1 << size) >> 1:
                                number = number - (1 << size) + 1
                            entry = (number << 16) | (run << 8) | 64 | (length + size)
                        table[t * 1024 + min_((code << free) + rest, 1023)] = int32(entry)
                code = code + 1
                place = place + 1
            if code > 1 << length or place > 256:
                status[0] = 1
            longs[t * 34 + length] = code << (16 - length)
            code = code << 1


@routine(("raw",), ("words", "status"), "1")
def jpeg_words(first, last, raw, words, status, count):
    """The bits of a scan, of `count` bytes, as words whose upper bits come first, and 400 words of zeros.

    status: whether there is a marker in the scan, and how many bits there are.
    """
    status[0] = 0
    bits = uint64(0)
    held = 0
    at = 0
    after = 0
    for i in range((count + 3) >> 2):
        word = int64(raw[i])
        flipped = word ^ 0xFFFFFFFF
        if after == 0 and 4 * i + 4 <= count and (flipped - 0x01010101) & word & 0x80808080 == 0:
            turned = (word & 255) << 24 | (word & 0xFF00) << 8 | (word >> 8) & 0xFF00 | word >> 24
            bits = (bits << uint64(32)) | uint64(turned)
            words[at] = uint32(bits >> uint64(held))
            at = at + 1
        else:
            for k in range(min_(4, count - 4 * i)):
                byte = (word >> (8 * k)) & 255
                if after == 1:
                    if byte != 0:
                        status[0] = 1
                    after = 0
                else:
                    bits = (bits << uint64(8)) | uint64(byte)
                    held = held + 8
                    if held == 32:
                        words[at] = uint32(bits & uint64(0xFFFFFFFF))
                        at = at + 1
                        held = 0
                    if byte == 255:
                        after = 1
    if after == 1:
        status[0] = 1
    status[1] = 32 * at + held
    words[at] = uint32((bits << uint64(32 - held)) & uint64(0xFFFFFFFF))
    for i in range(1, 401):
        words[at + i] = uint32(0)


# long: one loop over the bits of a scan, whose state a function could not give back.
@routine(("words", "table", "longs", "codes", "order", "steps", "basis", "blocks"), ("samples", "status"), "1",
         scratch={"block": ("int32", "256"), "rows": ("int32", "64"), "sums": ("int32", "8"),
                  "before": ("int32", "4")})
def jpeg_samples(first, last, words, table, longs, codes, order, steps, basis, blocks, samples, status, block, rows,
                 sums, before, each, across, top, bottom, left, right, count):
    """The samples of the blocks in rows `top` to `bottom` and columns `left` to `right` of a picture's units.

    words, of which `count` bits are the scan's; table, longs, codes: of `jpeg_tables`. order: for each place in a block
    its row and column, 8 * row + column, and 64 behind the last; steps: what numbers are multiplied with, 256 for each
    component, 0 behind the last. basis: (8, 8) in 8192nd, what each frequency adds to each place. A unit has `each`
    blocks, and a row of the picture `across` units. blocks: for each of a unit, the component, the places in table
    of DC and of AC, the place in samples of the first one, how far samples are apart from the next row,
    from the next unit, and from the next row of units. status: 1 for damage, or numbers so large that
    decoders round them otherwise.
    """
    damage = 0
    bits = uint64(0)
    have = int64(0)
    at = 0
    for i in range(4):
        before[i] = int32(0)
    for i in range(8):
        sums[i] = int32(0)
    y = 0
    while y <= bottom and damage == 0:
        x = 0
        end = across
        if y == bottom:
            end = right + 1
        while x < end and damage == 0:
            for b in range(each):
                component = blocks[b * 8]
                base = blocks[b * 8 + 1]
                step = component * 256
                for i in range(64):
                    block[i] = int32(0)
                k = int64(0)
                while k < 64:
                    if have < 32:
                        bits = bits | (uint64(words[at]) << uint64(32 - have))
                        at = at + 1
                        have = have + 32
                    entry = int64(table[base + int64(bits >> uint64(54))])
                    length = entry & 63
                    number = entry >> 16
                    run = (entry >> 8) & 255
                    if entry & 64 == 0:
                        size = number
                        if entry == 0:
                            which = base >> 10
                            look = int64(bits >> uint64(48))
                            length = int64(11)
                            while length < 16 and look >= longs[which * 34 + length]:
                                length = length + 1
                            if look >= longs[which * 34 + length]:
                                damage = 1
                            place = longs[which * 34 + 17 + length] + (look >> (16 - length))
                            symbol = int64(codes[which * 272 + 16 + max_(0, min_(place, 255))])
                            size = symbol & 15
                            run = symbol >> 4
                            if which < 2:
                                run = int64(0)
                                size = symbol
                            elif size == 0 and run < 15:
                                run = int64(128)
                        number = int64(0)
                        if size > 0:
                            number = int64((bits << uint64(length)) >> uint64(64 - size))
                            if number < (1 << size) >> 1:
                                number = number - (1 << size) + 1
                        length = length + size
                    bits = bits << uint64(length)
                    have = have - length
                    k = k + run
                    block[int64(order[k])] = int32(number * int64(steps[step + k]))
                    k = k + 1
                    base = blocks[b * 8 + 2]
                if k > 64 and k < 128:
                    damage = 1
                before[component] = int32(int64(before[component]) + int64(block[0]))
                block[0] = before[component]
                if y >= top and x >= left and x <= right:
                    for i in range(8):
                        c0 = block[i]
                        c1 = block[8 + i]
                        c2 = block[16 + i]
                        c3 = block[24 + i]
                        c4 = block[32 + i]
                        c5 = block[40 + i]
                        c6 = block[48 + i]
                        c7 = block[56 + i]
                        total = int32(abs_(c0) + abs_(c1) + abs_(c2) + abs_(c3)
                                      + abs_(c4) + abs_(c5) + abs_(c6) + abs_(c7))
                        sums[i] = max_(sums[i], total)
                        s0 = int32(8192 * c0 + 8192 * c4 + 1024)
                        s1 = int32(8192 * c0 - 8192 * c4 + 1024)
                        s2 = int32(4433 * c2 - 10704 * c6)
                        s3 = int32(10703 * c2 + 4433 * c6)
                        e0 = int32(s0 + s3)
                        e1 = int32(s1 + s2)
                        e2 = int32(s1 - s2)
                        e3 = int32(s0 - s3)
                        o0 = int32(11363 * c1 + 9633 * c3 + 6437 * c5 + 2260 * c7)
                        o1 = int32(9633 * c1 - 2259 * c3 - 11362 * c5 - 6436 * c7)
                        o2 = int32(6437 * c1 - 11362 * c3 + 2261 * c5 + 9633 * c7)
                        o3 = int32(2260 * c1 - 6436 * c3 + 9633 * c5 - 11363 * c7)
                        rows[i] = int32(e0 + o0) >> 11
                        rows[8 + i] = int32(e1 + o1) >> 11
                        rows[16 + i] = int32(e2 + o2) >> 11
                        rows[24 + i] = int32(e3 + o3) >> 11
                        rows[32 + i] = int32(e3 - o3) >> 11
                        rows[40 + i] = int32(e2 - o2) >> 11
                        rows[48 + i] = int32(e1 - o1) >> 11
                        rows[56 + i] = int32(e0 - o0) >> 11
                    place = blocks[b * 8 + 3] + (x - left) * blocks[b * 8 + 5] + (y - top) * blocks[b * 8 + 6]
                    pitch = blocks[b * 8 + 4]
                    for r in range(8):
                        for i in range(8):
                            total = int32(rows[r * 8] * basis[i] + rows[r * 8 + 1] * basis[8 + i]
                                          + rows[r * 8 + 2] * basis[16 + i] + rows[r * 8 + 3] * basis[24 + i]
                                          + rows[r * 8 + 4] * basis[32 + i] + rows[r * 8 + 5] * basis[40 + i]
                                          + rows[r * 8 + 6] * basis[48 + i] + rows[r * 8 + 7] * basis[56 + i] + 131072)
                            value = int32(int32(total >> 18) + 128)
                            samples[place + r * pitch + i] = max_(int32(0), min_(value, int32(255)))
            if at * 32 - have > count:
                damage = 1
            x = x + 1
        y = y + 1
    for i in range(8):
        if sums[i] > 2900:
            damage = 1
    status[0] = damage


# long: one loop over the rows of a picture, which keeps what is made of two rows of colour.
@routine(("samples",), ("out",), "1", scratch={"line": ("int32", "width + 32"), "colors": ("int32", "2 * width + 64")})
def jpeg_colors(first, last, samples, out, line, colors, width, height, x, y, mirrored, wide, tall, pitch, blue_at,
                red_at, last_x, last_y):
    """Red, green and blue, each (height, width), of the samples of brightness, blue and red.

    x, y: the first pixel in the samples of brightness, whose rows are `pitch` apart. wide, tall: 1 where a sample of a
    colour stands for two pixels across, down: then a pixel has 3 parts of the nearest one and 1 of the next. blue_at,
    red_at: where samples of the colours begin. last_x, last_y: the last ones of a colour that the picture has.
    mirrored: 1 for left to right.
    """
    half = pitch >> wide
    begin = x >> wide
    columns = ((x + width - 1) >> wide) - begin + 1
    low = max_(begin - 1, 0)
    high = min_(begin + columns, last_x)
    span = width + 32
    size = width * height
    for r in range(height):
        row = y + r
        other = row
        odd = row & 1
        if tall == 1:
            row = (y + r) >> 1
            other = min_(max_(row - 1 + 2 * odd, 0), last_y)
        for plane in range(2):
            one = blue_at + row * half
            two = blue_at + other * half
            if plane == 1:
                one = red_at + row * half
                two = red_at + other * half
            if tall == 1:
                for i in range(columns):
                    line[i + 1] = int32(3 * int32(samples[one + begin + i]) + int32(samples[two + begin + i]))
                line[0] = int32(3 * int32(samples[one + low]) + int32(samples[two + low]))
                line[columns + 1] = int32(3 * int32(samples[one + high]) + int32(samples[two + high]))
            else:
                for i in range(columns):
                    line[i + 1] = int32(samples[one + begin + i])
                line[0] = int32(samples[one + low])
                line[columns + 1] = int32(samples[one + high])
            place = plane * span
            if wide == 1 and tall == 1:
                for i in range(columns):
                    near = int32(line[i + 1] * 3)
                    colors[place + 2 * i] = int32(near + line[i] + 8) >> 4
                    colors[place + 2 * i + 1] = int32(near + line[i + 2] + 7) >> 4
            elif wide == 1:
                for i in range(columns):
                    near = int32(line[i + 1] * 3)
                    colors[place + 2 * i] = int32(near + line[i] + 1) >> 2
                    colors[place + 2 * i + 1] = int32(near + line[i + 2] + 2) >> 2
            elif tall == 1:
                for i in range(columns):
                    colors[place + i] = int32(line[i + 1] + 1 + odd) >> 2
            else:
                for i in range(columns):
                    colors[place + i] = line[i + 1]
        bright = (y + r) * pitch + x
        skip = x & wide
        at = r * width
        if mirrored == 1:
            at = r * width + width - 1
            for i in range(width):
                light = int32(samples[bright + i])
                b = int32(colors[skip + i] - 128)
                c = int32(colors[span + skip + i] - 128)
                more = int32(91881 * c + 32768)
                red = int32(int32(more >> 16) + light)
                more = int32(32768 - 22554 * b - 46802 * c)
                green = int32(int32(more >> 16) + light)
                more = int32(116130 * b + 32768)
                blue = int32(int32(more >> 16) + light)
                out[at - i] = max_(int32(0), min_(red, int32(255)))
                out[size + at - i] = max_(int32(0), min_(green, int32(255)))
                out[2 * size + at - i] = max_(int32(0), min_(blue, int32(255)))
        else:
            for i in range(width):
                light = int32(samples[bright + i])
                b = int32(colors[skip + i] - 128)
                c = int32(colors[span + skip + i] - 128)
                more = int32(91881 * c + 32768)
                red = int32(int32(more >> 16) + light)
                more = int32(32768 - 22554 * b - 46802 * c)
                green = int32(int32(more >> 16) + light)
                more = int32(116130 * b + 32768)
                blue = int32(int32(more >> 16) + light)
                out[at + i] = max_(int32(0), min_(red, int32(255)))
                out[size + at + i] = max_(int32(0), min_(green, int32(255)))
                out[2 * size + at + i] = max_(int32(0), min_(blue, int32(255)))
