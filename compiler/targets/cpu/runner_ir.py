"""The native plan runner as LLVM IR: it walks a table of steps and shares their units among threads.

A row of the table is {function, arguments, units, grain}; the function has the ABI of `kernel/ir.py`. One take is
`grain` units in a row. Workers take from the *ticket*, which is the step (high half) and the next take (low half):

    run:     open the pool; for each step of more than one take: publish its ticket, take too, wait until all takes are
             done; close the pool and wait until no worker is inside
    worker:  if the pool is open and takes are left: enter, take until there are none, leave; else spin, then sleep

A row without a function is a turn (its words are in `runtime/step_table.py`): whoever runs the table does what it says
and goes on with the row that it tells. A loop's rows so come again; turns change their arguments between rounds.

A worker enters by counting itself and then looking whether the pool is (still) open; `run` closes it and then waits for
the count to fall to 0. Both are sequentially consistent, so whoever is inside uses the table of the run in progress.
Within a round of a loop tickets only grow. In the next round a stale ticket may come back: whoever takes by it takes
that piece of the new round, for a row and its arguments are read after taking. A worker sleeps on `word`: it sets
`sleeping`, looks for work once more and waits for `word` to change; `run` publishes, and where `sleeping` was set
clears it, changes `word` and wakes all.

Whoever spins offers its CPU to others every few microseconds: where all CPUs are busy, spinning would use up the share
of time that the thread it waits for, or its own next step, needs.
"""
from __future__ import annotations

POOL_BYTES = 448  # the size of %pool below
# These are the byte offsets of %pool's fields that Python sets; `syscall` is the C library's function of that name.
QUIT, WORD, SYSCALL, FUTEX, YIELD, SPINS = 320, 192, 384, 392, 400, 408

FUNCTIONS = {"mxc_run": 2, "mxc_run_serial": 1, "mxc_worker": 2}  # by name, how many words each takes

_NUMBERS = {"x86_64": (202, 24), "aarch64": (98, 124)}  # the numbers of the system calls futex and sched_yield
_PAUSE = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}


def machines() -> frozenset[str]:
    """The machines (as platform.machine() names them) that have a native runner, on Linux."""
    return frozenset(_NUMBERS)


def system_calls(machine: str) -> tuple[int, int]:
    """The numbers of futex and sched_yield."""
    return _NUMBERS[machine]


def runner_source(machine: str) -> str:
    """IR text that defines mxc_run(pool, table), mxc_run_serial(table) and mxc_worker(pool, number); the table is
    {rows*, number of rows, scratch, stride}."""
    pause, declaration = _PAUSE[machine]
    return _TEXT.replace("PAUSE", pause).replace("DECLARATION", declaration)


_TEXT = """
%row = type { ptr, ptr, i64, i64 }
%table = type { ptr, i64, ptr, i64 }
; what many threads write has a cache line of its own
%pool = type { i64, [56 x i8],                        ; ticket at byte 0
               i64, [56 x i8],                        ; done, takes that are finished, at 64
               i64, ptr, ptr, i64, i64, [24 x i8],    ; open at 128, table, scratch, stride, takes of the step
               i32, i32, [56 x i8],                   ; word at 192, sleeping
               i64, [56 x i8],                        ; entered at 256
               i32, [60 x i8],                        ; quit at 320
               ptr, i64, i64, i64, [32 x i8] }        ; syscall at 384, numbers of futex and yield, spins

; the number of takes of a row
define internal i64 @takes(ptr %row) #0 {
  %up = getelementptr %row, ptr %row, i64 0, i32 2
  %gp = getelementptr %row, ptr %row, i64 0, i32 3
  %units = load i64, ptr %up
  %grain = load i64, ptr %gp
  %more = add i64 %units, %grain
  %last = sub i64 %more, 1
  %takes = udiv i64 %last, %grain
  ret i64 %takes
}

; does what the turn in row %step says; the row that comes next
define internal i64 @turn(ptr %row, i64 %step) #0 {
entry:
  %ap = getelementptr %row, ptr %row, i64 0, i32 1
  %args = load ptr, ptr %ap
  %kind = load i64, ptr %args
  %after = add i64 %step, 1
  %firstp = getelementptr i64, ptr %args, i64 1
  switch i64 %kind, label %reset [ i64 0, label %branch
                                   i64 1, label %advance ]
branch:
  %flagp = load ptr, ptr %firstp
  %flag = load i32, ptr %flagp
  %elsep = getelementptr i64, ptr %args, i64 2
  %else = load i64, ptr %elsep
  %none = icmp eq i32 %flag, 0
  %chosen = select i1 %none, i64 %else, i64 %after
  ret i64 %chosen
advance:
  call void @move(ptr %args, i64 1)
  %rounds = load i64, ptr %firstp
  %ended = add i64 %rounds, 1
  store i64 %ended, ptr %firstp
  %lengthp = getelementptr i64, ptr %args, i64 2
  %length = load i64, ptr %lengthp
  %startp = getelementptr i64, ptr %args, i64 3
  %start = load i64, ptr %startp
  %again = icmp ult i64 %ended, %length
  %next = select i1 %again, i64 %start, i64 %after
  ret i64 %next
reset:
  %other = load ptr, ptr %firstp
  %countp = getelementptr i64, ptr %other, i64 1
  %count = load i64, ptr %countp
  %back = sub i64 0, %count
  call void @move(ptr %other, i64 %back)
  store i64 0, ptr %countp
  ret i64 %after
}

; adds to the words of the arguments of a turn %times what it adds to each
define internal void @move(ptr %args, i64 %times) #0 {
entry:
  %np = getelementptr i64, ptr %args, i64 4
  %n = load i64, ptr %np
  br label %look
look:
  %i = phi i64 [0, %entry], [%i1, %one]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %one, label %out
one:
  %twice = mul i64 %i, 2
  %place = add i64 %twice, 5
  %wordp = getelementptr i64, ptr %args, i64 %place
  %word = load ptr, ptr %wordp
  %stepp = getelementptr i64, ptr %wordp, i64 1
  %by = load i64, ptr %stepp
  %total = mul i64 %by, %times
  %old = load i64, ptr %word
  %new = add i64 %old, %total
  store i64 %new, ptr %word
  %i1 = add i64 %i, 1
  br label %look
out:
  ret void
}

; runs take number %take of a row
define internal void @perform(ptr %row, i64 %take, ptr %scratch) #0 {
  %fn = load ptr, ptr %row
  %ap = getelementptr %row, ptr %row, i64 0, i32 1
  %args = load ptr, ptr %ap
  %up = getelementptr %row, ptr %row, i64 0, i32 2
  %units = load i64, ptr %up
  %gp = getelementptr %row, ptr %row, i64 0, i32 3
  %grain = load i64, ptr %gp
  %first = mul i64 %take, %grain
  %next = add i64 %first, %grain
  %over = icmp ugt i64 %next, %units
  %last = select i1 %over, i64 %units, i64 %next
  call void %fn(ptr %args, i64 %first, i64 %last, ptr %scratch)
  ret void
}

; takes and performs until the published step has no more takes; only while inside an open pool
define internal void @share(ptr %pool, ptr %scratch) #0 {
entry:
  %donep = getelementptr %pool, ptr %pool, i64 0, i32 2
  %tabp = getelementptr %pool, ptr %pool, i64 0, i32 5
  %table = load atomic ptr, ptr %tabp monotonic, align 8
  br label %look
look:
  %ticket = load atomic i64, ptr %pool acquire, align 8
  %step = lshr i64 %ticket, 32
  %take = and i64 %ticket, 4294967295
  %none = icmp eq i64 %take, 4294967295
  br i1 %none, label %out, label %count
count:
  %row = getelementptr %row, ptr %table, i64 %step
  %takes = call i64 @takes(ptr %row)
  %left = icmp ult i64 %take, %takes
  br i1 %left, label %try, label %out
try:
  %after = add i64 %ticket, 1
  %pair = cmpxchg ptr %pool, i64 %ticket, i64 %after acq_rel monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %work, label %look
work:
  call void @perform(ptr %row, i64 %take, ptr %scratch)
  %before = atomicrmw add ptr %donep, i64 1 release
  br label %look
out:
  ret void
}

; whether a worker would find something (a hint outside of the pool)
define internal i1 @promising(ptr %pool) #0 {
  %openp = getelementptr %pool, ptr %pool, i64 0, i32 4
  %open = load atomic i64, ptr %openp seq_cst, align 8
  %takesp = getelementptr %pool, ptr %pool, i64 0, i32 8
  %ticket = load atomic i64, ptr %pool seq_cst, align 8
  %takes = load atomic i64, ptr %takesp monotonic, align 8
  %take = and i64 %ticket, 4294967295
  %isopen = icmp ne i64 %open, 0
  %left = icmp ult i64 %take, %takes
  %both = and i1 %isopen, %left
  ret i1 %both
}

define void @mxc_worker(ptr %pool, i64 %number) #0 {
entry:
  %openp = getelementptr %pool, ptr %pool, i64 0, i32 4
  %scratchp = getelementptr %pool, ptr %pool, i64 0, i32 6
  %stridep = getelementptr %pool, ptr %pool, i64 0, i32 7
  %wordp = getelementptr %pool, ptr %pool, i64 0, i32 10
  %sleepp = getelementptr %pool, ptr %pool, i64 0, i32 11
  %enteredp = getelementptr %pool, ptr %pool, i64 0, i32 13
  %quitp = getelementptr %pool, ptr %pool, i64 0, i32 15
  %sysp = getelementptr %pool, ptr %pool, i64 0, i32 17
  %futexp = getelementptr %pool, ptr %pool, i64 0, i32 18
  %yieldp = getelementptr %pool, ptr %pool, i64 0, i32 19
  %spinsp = getelementptr %pool, ptr %pool, i64 0, i32 20
  %syscall = load ptr, ptr %sysp
  %futex = load i64, ptr %futexp
  %yield = load i64, ptr %yieldp
  %limit = load i64, ptr %spinsp
  br label %idle
idle:
  %spins = phi i64 [0, %entry], [%spins1, %spin], [%spins1, %rest], [0, %leave], [0, %wake]
  %word = load atomic i32, ptr %wordp seq_cst, align 4
  %quit = load atomic i32, ptr %quitp seq_cst, align 4
  %leaving = icmp ne i32 %quit, 0
  br i1 %leaving, label %out, label %look
out:
  ret void
look:
  %some = call i1 @promising(ptr %pool)
  br i1 %some, label %enter, label %nothing
enter:
  %e0 = atomicrmw add ptr %enteredp, i64 1 seq_cst
  %open = load atomic i64, ptr %openp seq_cst, align 8
  %isopen = icmp ne i64 %open, 0
  br i1 %isopen, label %inside, label %leave
inside:
  %scratch0 = load atomic ptr, ptr %scratchp monotonic, align 8
  %stride = load atomic i64, ptr %stridep monotonic, align 8
  %offset = mul i64 %stride, %number
  %scratch = getelementptr i8, ptr %scratch0, i64 %offset
  call void @share(ptr %pool, ptr %scratch)
  br label %leave
leave:
  %e1 = atomicrmw sub ptr %enteredp, i64 1 seq_cst
  br label %idle
nothing:
  %spins1 = add i64 %spins, 1
  %enough = icmp ugt i64 %spins1, %limit
  br i1 %enough, label %sleep, label %more
more:
  %low = and i64 %spins1, 255
  %long = icmp eq i64 %low, 0
  br i1 %long, label %rest, label %spin
spin:
  PAUSE
  br label %idle
rest:
  %y = call i64 (i64, ...) %syscall(i64 %yield)
  br label %idle
sleep:
  %was = atomicrmw xchg ptr %sleepp, i32 1 seq_cst
  %again = call i1 @promising(ptr %pool)
  br i1 %again, label %wake, label %wait
wait:
  %r = call i64 (i64, ...) %syscall(i64 %futex, ptr %wordp, i64 128, i32 %word, ptr null)
  br label %wake
wake:
  br label %idle
}

define void @mxc_run(ptr %pool, ptr %head) #0 {
entry:
  %stepsp = getelementptr %table, ptr %head, i64 0, i32 1
  %fromp = getelementptr %table, ptr %head, i64 0, i32 2
  %strideof = getelementptr %table, ptr %head, i64 0, i32 3
  %table = load ptr, ptr %head
  %steps = load i64, ptr %stepsp
  %scratch = load ptr, ptr %fromp
  %stride = load i64, ptr %strideof
  %donep = getelementptr %pool, ptr %pool, i64 0, i32 2
  %openp = getelementptr %pool, ptr %pool, i64 0, i32 4
  %tabp = getelementptr %pool, ptr %pool, i64 0, i32 5
  %scratchp = getelementptr %pool, ptr %pool, i64 0, i32 6
  %stridep = getelementptr %pool, ptr %pool, i64 0, i32 7
  %takesp = getelementptr %pool, ptr %pool, i64 0, i32 8
  %wordp = getelementptr %pool, ptr %pool, i64 0, i32 10
  %sleepp = getelementptr %pool, ptr %pool, i64 0, i32 11
  %enteredp = getelementptr %pool, ptr %pool, i64 0, i32 13
  %sysp = getelementptr %pool, ptr %pool, i64 0, i32 17
  %futexp = getelementptr %pool, ptr %pool, i64 0, i32 18
  %syscall = load ptr, ptr %sysp
  %futex = load i64, ptr %futexp
  store atomic i64 0, ptr %takesp monotonic, align 8
  store atomic i64 4294967295, ptr %pool monotonic, align 8
  store atomic ptr %table, ptr %tabp monotonic, align 8
  store atomic ptr %scratch, ptr %scratchp monotonic, align 8
  store atomic i64 %stride, ptr %stridep monotonic, align 8
  store atomic i64 1, ptr %openp seq_cst, align 8
  br label %next
next:
  %step = phi i64 [0, %entry], [%step1, %done], [%step2, %turn]
  %more = icmp ult i64 %step, %steps
  br i1 %more, label %begin, label %close
begin:
  %row = getelementptr %row, ptr %table, i64 %step
  %fn = load ptr, ptr %row
  %isturn = icmp eq ptr %fn, null
  br i1 %isturn, label %turn, label %kernel
turn:
  %step2 = call i64 @turn(ptr %row, i64 %step)
  br label %next
kernel:
  %takes = call i64 @takes(ptr %row)
  switch i64 %takes, label %publish [ i64 0, label %done
                                      i64 1, label %alone ]
alone:
  call void @perform(ptr %row, i64 0, ptr %scratch)
  br label %done
publish:
  store atomic i64 0, ptr %donep monotonic, align 8
  store atomic i64 %takes, ptr %takesp monotonic, align 8
  %ticket = shl i64 %step, 32
  store atomic i64 %ticket, ptr %pool seq_cst, align 8
  %asleep = load atomic i32, ptr %sleepp seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake, label %join
wake:
  store atomic i32 0, ptr %sleepp seq_cst, align 4
  %w = atomicrmw add ptr %wordp, i32 1 seq_cst
  %r = call i64 (i64, ...) %syscall(i64 %futex, ptr %wordp, i64 129, i32 2147483647)
  br label %join
join:
  call void @share(ptr %pool, ptr %scratch)
  call void @await(ptr %pool, ptr %donep, i64 %takes)
  br label %done
done:
  %step1 = add i64 %step, 1
  br label %next
close:
  store atomic i64 0, ptr %openp seq_cst, align 8
  call void @await(ptr %pool, ptr %enteredp, i64 0)
  ret void
}

; waits for *%place == %number: spins, then lets others have the CPU
define internal void @await(ptr %pool, ptr %place, i64 %number) #0 {
entry:
  %sysp = getelementptr %pool, ptr %pool, i64 0, i32 17
  %yieldp = getelementptr %pool, ptr %pool, i64 0, i32 19
  %syscall = load ptr, ptr %sysp
  %yield = load i64, ptr %yieldp
  br label %look
look:
  %n = phi i64 [0, %entry], [%n1, %pause], [%n1, %rest]
  %now = load atomic i64, ptr %place seq_cst, align 8
  %there = icmp eq i64 %now, %number
  br i1 %there, label %out, label %not
not:
  %n1 = add i64 %n, 1
  %long = icmp ugt i64 %n1, 255
  br i1 %long, label %rest, label %pause
pause:
  PAUSE
  br label %look
rest:
  %r = call i64 (i64, ...) %syscall(i64 %yield)
  br label %look
out:
  ret void
}

define void @mxc_run_serial(ptr %head) #0 {
entry:
  %stepsp = getelementptr %table, ptr %head, i64 0, i32 1
  %fromp = getelementptr %table, ptr %head, i64 0, i32 2
  %table = load ptr, ptr %head
  %steps = load i64, ptr %stepsp
  %scratch = load ptr, ptr %fromp
  br label %next
next:
  %step = phi i64 [0, %entry], [%step1, %done], [%step2, %turn]
  %more = icmp ult i64 %step, %steps
  br i1 %more, label %begin, label %out
begin:
  %row = getelementptr %row, ptr %table, i64 %step
  %fn = load ptr, ptr %row
  %isturn = icmp eq ptr %fn, null
  br i1 %isturn, label %turn, label %kernel
turn:
  %step2 = call i64 @turn(ptr %row, i64 %step)
  br label %next
kernel:
  %ap = getelementptr %row, ptr %row, i64 0, i32 1
  %args = load ptr, ptr %ap
  %up = getelementptr %row, ptr %row, i64 0, i32 2
  %units = load i64, ptr %up
  %some = icmp ne i64 %units, 0
  br i1 %some, label %go, label %done
go:
  call void %fn(ptr %args, i64 0, i64 %units, ptr %scratch)
  br label %done
done:
  %step1 = add i64 %step, 1
  br label %next
out:
  ret void
}
DECLARATION
attributes #0 = { nounwind }
"""
