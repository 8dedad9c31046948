"""Classes of kernel names and kinds of runtime calls."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import msgspec
import pytest
import yaml
from isal import isal_zlib

from ingest.normalise.classify import (
    KERNEL_RULES,
    RUNTIME_RULES,
    classify_kernels,
    runtime_kinds,
)
from ingest.vocab import KernelClass, RuntimeKind

SHARED = Path(__file__).resolve().parents[3] / "shared"


class Event(msgspec.Struct):
    cat: str = ""
    name: str = ""
    dur: float = 0.0


class Root(msgspec.Struct, rename="camel"):
    trace_events: list[Event]


OTHER_US = 100_000.0
"""Device time that may stay without a class over all traces at hand: 100 of about 20,600 ms."""

KERNELS = {
    KernelClass.GEMM: (
        "volta_sgemm_128x64_nt",
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_kernel__5x_cublas",
        "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN",
        "Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x96x64_MI16x16x1",
        "Custom_Cijk_Alik_Bljk_F8BS_BH_Bias_AS_SAB_MT256x256x128",
        "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_64x64_32x6_tn_align8>(P)",
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>>>(P)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)",
        "void gemv2T_kernel_val<int, int, float, 128, 16, 4, 4>(cublasGemvParamsEx<int>)",
        "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float>>>(P)",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 512u, 7168u>(float*, int*)",
        "fused_moe_kernel",
        "_ZN5aiter22fmoe_bf16_blockscaleFp8EPvS0_",
        "triton_tem_fused_addmm_relu_3",
        "triton_mm",
        "void marlin::Marlin<256, 1, 8, 8, 4, 8>(int4 const*, int4*, int)",
    ),
    KernelClass.ATTENTION: (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(P)",
        "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8>>, 7>>(P)",
        "_ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelINS_4FooIfEEEEEvT0_",
        "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(AttentionKernel::Params)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1",
        "attn_fwd",
        "kernel_unified_attention_3d",
        "void vllm::paged_attention_v2_kernel<unsigned short, 128, 16>(float*)",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0>(P)",
        "void flashinfer::MergeStatesKernel<8u, 16u, float, float>(float*, float*)",
        "_fwd_grouped_kernel_stage1",
        "triton_tem_fused_flex_attention_2",
    ),
    KernelClass.CONVOLUTION: (
        "volta_scudnn_128x32_stridedB_splitK_medium_nn_v1",
        "turing_h1688cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1",
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)",
        "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x32_cudnn",
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816dgrad_optimized_bf16_64x64>(P)",
        "void wgrad_alg0_engine<float, 512, 6, 5, 3, 3, 3, true, 512>(int, int)",
        "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2",
        "miopenSp3AsmConv_v30_3_1_gfx94x_fp32_f2x3_stride1",
        "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_3FooE",
        "triton_tem_fused_convolution_0",
        "void (anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(float*)",
    ),
    KernelClass.NORMALISATION: (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long)",
        "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(float)",
        "MIOpenBatchNormFwdTrainSpatial",
        "std::enable_if<((4)>(0))&&vllm::_typeConvert<c10::Half>::exists, void>::type "
        "vllm::fused_add_rms_norm_kernel<c10::Half, 4>(c10::Half*, int)",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvPT_",
        "void cuApplyLayerNorm<float, float, float>(float*)",
        "_rms_norm_fwd_fused",
    ),
    KernelClass.ELEMENTWISE: (
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda"
        "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}>(int)",
        "void at::native::vectorized_elementwise_kernel<8, fbgemm_gpu::_float_to_hfp8_gpu()>(int)",
        "at::native::xpu::VectorizedElementwiseKernel<8, at::native::xpu::MulFunctor<float>>",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, int, 2, 64, 64>(P)",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, "
        "at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float>, std::plus<float>>(P)",
        "triton_poi_fused_native_layer_norm_embedding_mm_4",
        "triton__0d1d2d3de",
        "void vllm::rotary_embedding_kernel<c10::Half, true>(long const*)",
        "void vllm::reshape_and_cache_flash_kernel<float, float>(float const*)",
        "void tensorrt_llm::kernels::quantize_with_block_size<1>(flashinfer::QuantizationSFLayout)",
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false>(float*)",
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16EEvPT_",
        "__amd_rocclr_copyBuffer",
    ),
    KernelClass.REDUCTION: (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps<float>>>(P)",
        "void at::native::reduce_kernel<128, 4, ReduceOp<float, at::native::NormTwoOps<float>>>(P)",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, true>(float*)",
        "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int)",
        "void cub::DeviceScanKernel<cub::Policy, cub::TransformInputIterator<int>, int*>(int*)",
        "void rocprim::detail::trampoline_kernel<rocprim::detail::scan_impl<true, float>>(float*)",
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(float*)",
        "triton_red_fused__scaled_mm_native_layer_norm_7",
        "triton_per_fused_all_reduce_wait_tensor_sum_1",
        "void moe::dev::routing::routingRenormalize::routingIndicesClusterKernel<int>(P)",
    ),
    KernelClass.EMBEDDING: (
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<>()",
        "void fbgemm_gpu::permute_2D_data_kernel<true, int, int, float>(int)",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, 2>(P)",
        "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>(int*)",
        "void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<int>(P)",
    ),
    KernelClass.OPTIMIZER: (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
        "FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>(P)",
        "void multi_tensor_apply_kernel<TensorListMetadata<5>, LAMBStage1Functor<float>>(int)",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<3>, "
        "PointwiseOpScalarFunctor<float, 3, 3, 0>, std::divides<float>, float>(P)",
        "void kOptimizerStatic8bit2StateBlockwise<float, 0, 256, 1>(float*)",
        "adamw_kernel",
    ),
    KernelClass.COLLECTIVE: (
        "ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs)",
        "mscclKernel_Sum_half_LL_true(ncclDevComm*, mscclAlgo*)",
        "void mscclpp::allreduce7<__half>(__half*)",
        "oneccl_allreduce_pcie<float, 4>",
        "hccl_AllReduce_kernel",
        "void aiter::cross_device_reduce_1stage<__hip_bfloat16, 8>(aiter::RankData*)",
        "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<int>>(P)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<4>(P)",
        "void tensorrt_llm::kernels::twoShotAllReduceKernel<float, 8>(P)",
        "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16>(P)",
        "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(__nv_bfloat16*)",
        "nvshmemi_barrier_on_stream_kernel",
    ),
    KernelClass.OTHER: (
        "at::cuda::(anonymous namespace)::spin_kernel(long)",
        "my_kernel(int*)",
        "",
        "void broken<name(",
    ),
}

CALLS = {
    RuntimeKind.LAUNCH: (
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaLaunchKernel_ptsz",
        "cudaLaunchCooperativeKernel",
        "cuLaunchKernel",
        "cuLaunchKernelEx_ptsz",
        "hipLaunchKernel",
        "hipExtLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipModuleLaunchCooperativeKernel",
        "urEnqueueKernelLaunch",
        "zeCommandListAppendLaunchKernel",
        "runFunction - job_prep_and_submit_for_execution",
    ),
    RuntimeKind.GRAPH_LAUNCH: (
        "cudaGraphLaunch",
        "cuGraphLaunch",
        "hipGraphLaunch",
        "urEnqueueCommandBufferExp",
        "zeCommandQueueExecuteCommandLists",
    ),
    RuntimeKind.MEMCPY: (
        "cudaMemcpyAsync",
        "cudaMemcpy",
        "cuMemcpyHtoDAsync_v2",
        "hipMemcpyWithStream",
        "urEnqueueUSMMemcpy",
        "zeCommandListAppendMemoryCopy",
    ),
    RuntimeKind.MEMSET: (
        "cudaMemsetAsync",
        "cuMemsetD32Async",
        "hipMemsetAsync",
        "urEnqueueUSMFill",
        "zeCommandListAppendMemoryFill",
    ),
    RuntimeKind.DEVICE_SYNC: ("cudaDeviceSynchronize", "cuCtxSynchronize", "hipDeviceSynchronize"),
    RuntimeKind.STREAM_SYNC: (
        "cudaStreamSynchronize",
        "cuStreamSynchronize",
        "hipStreamSynchronize",
        "urQueueFinish",
        "zeCommandQueueSynchronize",
    ),
    RuntimeKind.EVENT_SYNC: (
        "cudaEventSynchronize",
        "hipEventSynchronize",
        "urEventWait",
        "zeEventHostSynchronize",
    ),
    RuntimeKind.EVENT_RECORD: (
        "cudaEventRecord",
        "cudaEventRecordWithFlags",
        "cuEventRecord",
        "hipEventRecord",
    ),
    RuntimeKind.EVENT_WAIT: (
        "cudaStreamWaitEvent",
        "cuStreamWaitEvent_ptsz",
        "hipStreamWaitEvent",
        "urEnqueueEventsWaitWithBarrier",
    ),
    RuntimeKind.EVENT_QUERY: ("cudaEventQuery", "cudaStreamQuery", "hipEventQuery"),
    RuntimeKind.MALLOC: (
        "cudaMalloc",
        "cudaMallocHost",
        "cudaHostAlloc",
        "cuMemAlloc_v2",
        "cuMemCreate",
        "hipMalloc",
        "hipHostMalloc",
        "urUSMDeviceAlloc",
    ),
    RuntimeKind.FREE: (
        "cudaFree",
        "cudaFreeHost",
        "cuMemFree_v2",
        "cuMemUnmap",
        "hipFree",
        "urUSMFree",
    ),
    RuntimeKind.OTHER: (
        "cudaMallocAsync",
        "cudaMallocFromPoolAsync",
        "cudaFreeAsync",
        "cuMemAllocAsync",
        "cuMemFreeAsync",
        "cuStreamWaitValue32_v2",
        "cuStreamWriteValue64",
        "cudaLaunchHostFunc",
        "cudaGraphAddMemcpyNode",
        "cudaGraphAddKernelNode",
        "cudaGraphExecKernelNodeSetParams",
        "cudaGraphInstantiate",
        "cudaStreamIsCapturing",
        "cudaEventElapsedTime",
        "cudaEventCreateWithFlags",
        "hipEventDestroy",
        "cudaFuncSetAttribute",
        "INVALID",
    ),
}


@pytest.mark.parametrize(
    ("name", "expected"), [(name, kind) for kind, names in KERNELS.items() for name in names]
)
def test_a_kernel_has_the_class_of_what_it_does(name: str, expected: KernelClass) -> None:
    assert KernelClass(int(classify_kernels([name])[0])) is expected


@pytest.mark.parametrize(
    ("name", "expected"), [(name, kind) for kind, names in CALLS.items() for name in names]
)
def test_a_call_has_the_kind_of_what_it_does(name: str, expected: RuntimeKind) -> None:
    assert RuntimeKind(int(runtime_kinds([name])[0])) is expected


@pytest.mark.parametrize("rules", [KERNEL_RULES, RUNTIME_RULES], ids=lambda path: path.name)
def test_every_rule_says_why(rules: Path) -> None:
    assert all(rule["why"] for rule in yaml.safe_load(rules.read_text(encoding="utf-8")))


def test_classes_come_back_in_the_order_of_the_names() -> None:
    classes = classify_kernels(["volta_sgemm_64x64_nn", "attn_fwd"])
    assert classes.tolist() == [KernelClass.GEMM, KernelClass.ATTENTION]
    assert classes.dtype == runtime_kinds(["cudaFree"]).dtype == "int8"


@pytest.mark.parametrize("part", ["void a<", "(", "multi_tensor_apply", "cutlass", "rocprim::"])
def test_an_absurdly_long_name_takes_no_absurd_time(part: str) -> None:
    begin = perf_counter()
    classify_kernels([part * 50_000])
    assert perf_counter() - begin < 10


def test_recorded_kernels_leave_next_to_no_time_without_a_class() -> None:
    files = sorted((SHARED / "traces").glob("**/*.json.gz"))
    if not files:
        pytest.skip(f"no traces under {SHARED / 'traces'}")
    time_us: Counter[str] = Counter()
    for file in files:
        for name, dur_us in _kernels(file):
            time_us[name] += dur_us
    classes = classify_kernels(list(time_us))
    other = {
        name: spent
        for (name, spent), kind in zip(time_us.items(), classes, strict=True)
        if kind == KernelClass.OTHER
    }
    assert sum(other.values()) < OTHER_US, sorted(other, key=other.__getitem__)[-5:]


def _kernels(file: Path) -> Iterator[tuple[str, float]]:
    # Typed, so that what is not asked for is skipped unread: all files take 2 s, not 16.
    root = msgspec.json.decode(isal_zlib.decompress(file.read_bytes(), 31), type=Root | list[Event])
    for event in root if isinstance(root, list) else root.trace_events:
        if event.cat in ("kernel", "Kernel"):
            yield event.name, event.dur
