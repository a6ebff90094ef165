"""The checks of the report, in the order of their value: later ones are skipped where the time is over."""

from __future__ import annotations

from aiplatform.cli.gpu_report.definitions import Check, Need, Quantity

CHECKS: tuple[Check, ...] = (
    Check(
        "binding", "A job sees only its own GPUs", ("65", "125"), "binding:visible", 15,
        (
            Quantity("jobs", "Jobs at the same time", 2),
            Quantity("visible", "GPUs that a job sees", 1, equals=1),
            Quantity("same", "The GPU is the assigned one", True, equals=True),
            Quantity("foreign", "Device files of other GPUs that are accessible", 0, equals=0, optional=True),
        ),
    ),
    Check(
        "queues", "Celery workers serve the start queue of each GPU, and its jobs are bound to it", ("65", "145"),
        "binding:queues", 8,
        (
            Quantity("unserved", "Reserved GPUs without a worker", 0, equals=0),
            Quantity("bound", "The job of the reservation is bound to its GPUs", True, equals=True),
        ),
        needs=(),
    ),
    Check(
        "share_memory", "Two jobs on one GPU stay within the "
                        "memory of their shares", ("65", "M27"), "sharing:memory", 25,
        (
            Quantity("used_2", "Memory used of a quarter", 0.99, at_least=0.8, at_most=1.0),
            Quantity("used_4", "Memory used of a half", 0.99, at_least=0.8, at_most=1.0),
        ),
    ),
    Check(
        "throughput", "1, 2, 4 and 8 jobs share one GPU by time slicing", ("69", "74"), "sharing:turns", 50,
        (
            *(Quantity(f"steps_{count}", f"Steps with {count} × 1 job", 9000, "steps/s") for count in (1, 2, 4, 8)),
            *(Quantity(f"load_{count}", f"GPU utilization with {count} × 1 job", 40, "%") for count in (1, 2, 4, 8)),
            Quantity("kept", "Throughput of 8 jobs relative to 1 job", 0.95, at_least=0.5),
        ),
    ),
    Check(
        "mps", "Jobs on shares of one GPU are faster with MPS "
               "and stay within its limits", ("70", "71", "72", "73", "I11", "R36"),
        "sharing:mps", 55,
        (
            Quantity("turns", "Steps of 4 jobs with time slicing", 9000, "steps/s"),
            *(Quantity(f"steps_{count}", f"Steps with {count} jobs (MPS)", 25_000, "steps/s") for count in (2, 4, 8)),
            Quantity("ratio", "4 jobs with MPS compared with time slicing", 2.8, "×", at_least=1.2),
            Quantity("limited", "Each client is limited to a quarter of the memory", True, equals=True),
        ),
        needs=(Need.TORCH, Need.MPS),
    ),
    Check(
        "precision", "A preset trains as fast as a bare loop, and bfloat16 is faster", ("154", "R34"),
        "training:precision", 60,
        (
            Quantity("fp32_step_ms", "Step in FP32", 40, "ms"),
            Quantity("fp32_bare_ms", "The same step in a bare loop", 39, "ms"),
            Quantity("fp32_share", "Preset speed relative to the bare loop, FP32", 0.97, at_least=0.9),
            Quantity("bf16_step_ms", "Step in bfloat16", 20, "ms"),
            Quantity("bf16_bare_ms", "The same step in a bare loop, bfloat16", 19, "ms"),
            Quantity("bf16_share", "Preset speed relative to the bare loop, bfloat16", 0.95, at_least=0.9),
            Quantity("speedup", "bfloat16 compared with FP32", 2.0, "×", at_least=1.05),
        ),
    ),
    Check(
        "collectives", "Two ranks communicate with NCCL and scale near-linearly", ("124", "148", "155", "156", "R35"),
        "hardware:collectives", 30,
        (
            Quantity("all_reduce", "All-reduce returns the correct sum", True, equals=True),
            Quantity("broadcast", "Broadcast returns the correct values", True, equals=True),
            Quantity("all_gather", "All-gather returns the correct values", True, equals=True),
            Quantity("bus_gb_s", "Bus bandwidth of an all-reduce of 256 MiB", 150, "GB/s", at_least=2),
            Quantity("efficiency", "Speed of each rank relative to a single GPU", 0.93, at_least=0.7),
            Quantity("group", "The platform treats both GPUs as one fast group", True),
        ),
        needs=(Need.TORCH, Need.TWO_GPUS),
    ),
    Check(
        "telemetry", "Metrics of the platform match nvidia-smi", ("183", "R32"), "signals:telemetry", 20,
        (
            Quantity("memory", "Difference in used memory", 2, "MiB", at_most=64),
            Quantity("util", "Difference in utilization", 1, "points", at_most=15),
            Quantity("temperature", "Difference in temperature", 0.5, "°C", at_most=5),
            Quantity("power", "Relative difference in power", 0.02, at_most=0.15, optional=True),
            Quantity("own_mib", "Memory attributed to the job", 2500, "MiB", at_least=2000, optional=True),
        ),
        needs=(Need.TORCH, Need.NVIDIA_SMI),
    ),
    Check(
        "out_of_memory", "A job beyond its share fails with the correct cause", ("65", "M27"),
        "sharing:out_of_memory", 12,
        (
            Quantity("code", "Exit code of the program", 1, equals=1),
            Quantity("cause", "The reported cause is insufficient GPU memory", True, equals=True),
        ),
    ),
    Check(
        "pause", "A pause releases the compute of the "
                 "GPU, a stop its memory", ("160", "162", "R09"), "signals:pause", 30,
        (
            Quantity("busy", "Utilization while computing", 99, "%", at_least=30),
            Quantity("paused", "Utilization while paused", 0, "%", at_most=1),
            Quantity("again", "Utilization after resuming", 99, "%", at_least=30),
            Quantity("held", "Memory used", 2700, "MiB", at_least=2000),
            Quantity("moved", "Memory change during the pause", 0, "MiB", at_most=8),
            Quantity("left", "Memory in use after the stop", 0, "MiB", at_most=64),
            Quantity("stopped_s", "Duration of the stop", 0.2, "s", at_most=15),
        ),
    ),
    Check(
        "checkpoint", "A preempted training leaves the GPU and continues from its checkpoint", ("M11", "R09"),
        "training:checkpoint", 40,
        (
            Quantity("code", "Exit code of the suspended training", 75, equals=75),
            Quantity("left_s", "Time until the GPU is free", 1.5, "s", at_most=60),
            Quantity("left_mib", "Memory in use after leaving", 0, "MiB", at_most=64),
            Quantity("step", "Step of the checkpoint", 24),
            Quantity("lost", "Lost steps", 0, equals=0),
            Quantity("repeated", "Repeated steps", 0, equals=0),
        ),
    ),
    Check(
        "eviction", "The driver moves a training off the GPU and back with identical losses", ("M11", "R09"),
        "signals:eviction", 70,
        (
            Quantity("held_mib", "Memory used by the training", 1600, "MiB", at_least=1024),
            Quantity("freed", "Share of it that is free meanwhile", 1.0, at_least=0.9),
            Quantity("filled", "Share of the GPU used by another program meanwhile", 0.75, at_least=0.5),
            Quantity("out_s", "Time to leave", 0.8, "s"),
            Quantity("back_s", "Time to return", 0.6, "s"),
            Quantity("steps", "Steps with identical losses", 400, equals=400),
        ),
        needs=(Need.TORCH, Need.EVICTION),
    ),
    Check(
        "rates", "Matrix throughput and memory bandwidth are "
                 "close to the device catalog", ("157",), "hardware:rates", 15,
        (
            Quantity("float32_tflops", "FP32", 50, "TFLOPS"),
            Quantity("bfloat16_tflops", "bfloat16 with FP32 accumulation", 700, "TFLOPS"),
            Quantity("memory_gb_s", "Memory bandwidth", 4000, "GB/s"),
            Quantity("float32_tflops_share", "FP32 relative to the catalog", 0.75, at_least=0.5, optional=True),
            Quantity("bfloat16_tflops_share", "bfloat16 relative to the catalog", 0.7, at_least=0.4, optional=True),
            Quantity("memory_gb_s_share", "Bandwidth relative to the catalog", 0.85, at_least=0.6, optional=True),
        ),
    ),
    Check(
        "loading", "A training does not wait for its images", ("133", "146"), "training:loading", 20,
        (
            Quantity("wait_share", "Share of a step spent waiting for data", 0.01, at_most=0.1),
            Quantity("images_s", "Training throughput (images)", 6000, "images/s"),
        ),
    ),
    Check(
        "xid", "A simulated Xid message is detected and attributed to its GPU", ("173",), "device_errors:xid", 4,
        (
            Quantity("readable", "The platform can read the kernel log", True),
            Quantity("located", "The PCI address of the GPU is known", True, equals=True),
            Quantity("found", "The simulated message is detected", True, equals=True),
            Quantity("kept", "It is stored for the job", True, equals=True),
        ),
        needs=(),
    ),
    Check(
        "tensorrt", "A TensorRT engine is built and served, with the same predictions as ONNX Runtime", ("I08", "I09"),
        "serving:tensorrt", 60,
        (
            Quantity("provider", "Execution provider", "TensorRT", equals="TensorRT"),
            Quantity("layers", "Engine layers", 8, at_least=1, optional=True),
            Quantity("build_s", "Build time", 12, "s"),
            Quantity("difference", "Maximum difference of an output", 0.004, at_most=0.05),
            Quantity("served_difference", "Same for a prediction of the model server", 0.004, at_most=0.05),
            Quantity("images_s", "Throughput of the engine", 40_000, "images/s"),
            Quantity("plain_images_s", "Throughput of ONNX Runtime", 2000, "images/s"),
            Quantity("speedup", "Engine compared with ONNX Runtime", 20, "×", at_least=1),
        ),
        needs=(Need.TORCH, Need.TENSORRT),
    ),
    Check(
        "video", "Video is decoded on the GPU", ("I10",), "serving:video", 20,
        (
            Quantity("decoder", "Decoder", "cuda", equals="cuda"),
            Quantity("whole", "No frames are missing", True, equals=True),
            Quantity("frames_s", "Frames of 1280×720", 900, "frames/s", at_least=25),
            Quantity("software_frames_s", "Same on the CPU", 600, "frames/s"),
            Quantity("why", "Reason why a device was not used", "", optional=True),
        ),
        needs=(Need.VIDEO,),
    ),
    Check(
        "compile", "torch.compile is faster, also in a preset", ("154", "R36"), "training:compiled", 110,
        (
            Quantity("compiled_step_ms", "Step with torch.compile", 16, "ms"),
            Quantity("compiled_bare_ms", "The same step in a bare loop", 15.5, "ms"),
            Quantity("compiled_share", "Preset speed relative to the bare loop", 0.96, at_least=0.9),
            Quantity("speedup", "Compared with the preset without torch.compile", 1.2, "×", at_least=0.95),
        ),
        needs=(Need.TORCH, Need.COMPILER),
    ),
)  # fmt: skip
