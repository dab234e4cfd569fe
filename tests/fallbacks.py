"""Host fallbacks that tests accept, each with its condition; any other one fails the test.

The jit engine counts every instruction that Python runs for compiled code, with the reason
(`Report.fallbacks`). Tests of both engines and of compiled code hold the counts to these tables, so
that a fast path that is never taken fails them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

# Instructions without a lowering, by reason. They always fall back where the reason holds.
HOST_ONLY = {
    # Queues are objects of Python; compiled code uses their slots once they are open.
    "a queue is opened": "pto.aic_initialize_pipe pto.aiv_initialize_pipe",
    "a queue without a place": (
        "pto.aic_initialize_pipe pto.aiv_initialize_pipe pto.tpush_to_aiv pto.tpush_to_aic "
        "pto.tpop_from_aic pto.tpop_from_aiv pto.tfree_from_aic pto.tfree_from_aiv"
    ),
    "a push with a scale": "pto.tpush_to_aiv",
    # Text for a person is Python's; queues between kernels of one side are too.
    "no emitter": (
        "pto.print pto.tprint llvm.alloca pto.declare_tile pto.declare_global pto.tpush pto.tpop "
        "pto.tfree pto.initialize_l2l_pipe pto.initialize_l2g2l_pipe pto.copy_matrix_cc_to_cbuf "
        "pto.copy_matrix_cc_to_gm pto.set_quant_scalar pto.set_quant_vector"
    ),
    # The place of a tile is known only when the program runs.
    "it defines the place of a tile": (
        "pto.tsubview pto.talias pto.tget_scale_addr pto.tpop pto.talloc"
    ),
    "a handle, or a view": "pto.tassign",
    # An agent that waits for others outside a coroutine, or looks at memory that others write.
    "a wait in a function that is no coroutine": "pto.tpush pto.tpop pto.talloc pto.syncall",
    "a poll in a function that is no coroutine": "pto.comm.ttest",
    # Addresses as numbers: only the host knows which array one belongs to.
    "the address of a pointer": "pto.ptrtoint pto.castptr",
    "a number that is an address in global memory": "pto.inttoptr",
    "a number of another width": "pto.castptr",
    # Operands in another form than the fast path takes.
    "a value that Python holds": "pto.tmrgsort memref.store arith.constant pto.shuffle_bfly",
    "elements by pointer": "pto.mgather",
    "source is TileDesc": "pto.vlds pto.uvld",
    "destination is TileDesc": "pto.vsts",
    "ptr is ViewDesc": "pto.load_scalar pto.store_scalar",
    # Layouts, types and sizes that no loop is written for.
    "a boxed or packed tile": (
        "pto.tadd pto.tsub pto.tcvt pto.tcolexpand pto.tcolexpandadd pto.trowsum"
        " pto.tadds pto.tmuls pto.tlrelu pto.tneg"
    ),
    "packed elements": (
        "pto.vmi.vcvt pto.mte_l0c_l1 pto.load_cbuf_to_ca_s4 pto.load_cbuf_to_cb_s4"
    ),
    "a buffer for every turn": "pto.pointer_cast",
    "a tile of another agent": "pto.tmov",
    "a switch of work items": "pto.section.simt",
    "a clip known only when it runs": "pto.mte_l0c_l1",
    "a product of these types": "pto.mad pto.mad_mx",
    "scaled integers": "pto.tmatmul.mx",
    "scales of another type, or fewer than the factors may need": (
        "pto.tmatmul.mx pto.tgemv.mx pto.tgemv.mx.acc pto.tgemv.mx.bias"
    ),
    "a view whose layout is known only when it runs, or no accumulator": "pto.tstore pto.tstore_fp",
    "columns beside the loaded ones": "pto.tload",
    "pairs along a line, or of an unknown number": "pto.tcolsum",
    "arithmetic of float8_e4m3fn": "pto.tgather pto.mte_l0c_l1 pto.texpands",
    "arithmetic of float8_e5m2": "pto.mte_l0c_l1",
    "arithmetic on elements without machine instructions": "pto.tadd pto.tcolexpandadd pto.tmul",
    "packed channels": "pto.mte_gm_l1_frac",
    "a size that is known only when it runs": "pto.mad pto.mad_acc pto.mad_bias",
}
# Guards of fast paths, by what they say where they fail: the tests that make one fail on purpose,
# and the instructions that fall back there.
_BURSTS = "CTRL combines what is written, bursts overlap, or a number is out of range"
_GROUP = "views of a fused group overlap, or are not plain"
_PRODUCT = "a register selects TF32 or HF32, accumulators overlap, or a scaled factor is not exact"
_SLOTS = "the slots of the queue have no place that compiled code knows"
_PROGRAMS = "test_agreement_programs::test_functions_of_good_programs"
GUARDS = {
    _BURSTS: {
        "test_cube::test_the_segment_of_relu_parameters_is_a_place_of_its_own": "pto.mte_l1_fb",
        "test_dma::test_a_copy_onto_itself_reads_before_it_writes": "pto.mte_ub_ub",
        "test_dma::test_atomic_add_rounds_in_the_type_of_the_elements": "pto.mte_ub_gm",
        "test_dma::test_atomic_bursts_over_the_same_element_all_count": "pto.mte_ub_gm",
        "test_dma::test_atomic_types_make_stores_add": "pto.mte_ub_gm",
        "test_dma::test_padded_bursts_apart_by_no_whole_number_of_elements": "pto.copy_gm_to_ubuf",
        "test_dma::test_bursts_over_each_other_and_none": "pto.mte_gm_ub",
        "test_dma::test_control_bits_choose_the_atomic_operation": "pto.mte_ub_gm",
        "test_dma::test_no_bursts_and_empty_bursts_move_nothing": "pto.mte_gm_ub",
        "test_dma::test_within_a_buffer": "pto.mte_ub_ub",
        _PROGRAMS: "pto.mte_gm_ub",
    },
    "CTRL changes what is written, rows overlap, or a number is out of range": {
        "test_quantise::test_control_bits_stand_in_for_the_clause": "pto.mte_l0c_l1",
        "test_fixpipe::test_the_atomic_type_of_the_control_register_holds_without_a_clause": (
            "pto.mte_l0c_gm"
        ),
        _PROGRAMS: "pto.mte_l0c_l1",
    },
    _GROUP: {
        "test_fused_orders::test_what_was_stored_is_loaded_by_another_name": (
            "pto.tload pto.tadds pto.tmuls pto.tstore"
        ),
        "test_fused_orders::test_rows_that_are_written_further_apart": (
            "pto.tload pto.tadds pto.tstore"
        ),
        "test_fusion::test_what_was_stored_is_loaded": "pto.tload pto.tadds pto.tadd pto.tstore",
        "test_fusion::test_windows_of_one_array": "pto.tload pto.tadds pto.tmul pto.tstore",
        "test_report::test_a_guard_that_fails_counts_each_instruction_and_block": (
            "pto.tload pto.tstore"
        ),
        "test_report::test_the_command_shows_them": "pto.tload pto.tstore",
        "test_report::test_threads_count_what_each_of_them_did": "pto.tload pto.tstore",
    },
    _PRODUCT: {
        "test_forwarding::test_factors_with_fewer_bits": "pto.tmatmul",
        "test_matmul::test_a_scale_of_255_is_nan": "pto.tmatmul.mx",
        "test_matmul::test_terms_beyond_f32_become_infinite_or_vanish": "pto.tmatmul.mx",
        "test_products::test_products_of_pairs_of_four_bits": "pto.tmatmul.mx pto.tmatmul.mx.acc",
        "test_products::test_products_with_block_scales": "pto.tmatmul.mx pto.tmatmul.mx.acc",
        "test_matmul::test_tf32_rounds_factors_to_ten_bits_of_mantissa": "pto.tmatmul",
        _PROGRAMS: "pto.tmatmul.mx pto.tmatmul.mx.acc pto.tmatmul.mx.bias",
    },
    "a factor times its scale is not exact": {
        "test_mad::test_a_scale_of_all_ones_is_not_a_number": "pto.mad_mx",
        "test_mad::test_scales_reach_beyond_the_range_of_f32_factors": "pto.mad_mx",
        _PROGRAMS: "pto.mad_mx pto.mad_mx_acc pto.mad_mx_bias",
    },
    "the view has an unusual layout, leaves its memory, or its elements overlap": {
        "test_faults::test_bounds_are_told_alike": "pto.tload pto.tstore",
        "test_moves::test_a_view_that_lies_on_itself_is_stored_as_the_reference_does": "pto.tstore",
        "test_report::test_an_instruction_by_itself_has_its_own_condition": "pto.tstore",
    },
    "operands overlap, or another rank is told of a sum": {
        "test_accesses::test_results_at_one_place_are_written_in_the_order_of_the_operands": (
            "pto.tinterleave pto.tdeinterleave"
        ),
        "test_collective::test_sides_that_overlap_are_read_first": "pto.comm.tput",
        "test_collective::test_sums_are_told_where_ranks_run_elsewhere": "pto.comm.tput",
    },
    "another rank is told of the sum": {
        "test_collective::test_sums_are_told_where_ranks_run_elsewhere": "pto.comm.tnotify",
    },
    _SLOTS: {
        "test_coroutines::test_a_queue_in_global_memory_has_slots_in_every_block": (
            "pto.tpush_to_aic pto.tpush_to_aiv"
        ),
        "test_push_scales::test_the_word_of_a_single_column_is_whole": "pto.tpush_to_aiv",
        "test_queues::test_halves_of_a_region_known_only_when_it_runs": "pto.tpush_to_aiv",
    },
    "a stride or a repeat is out of range": {
        "test_raw_rows::test_no_repeats_are_none": "pto.ub.vabs"
    },
    "CTRL selects TF32": {
        "test_mad::test_raw_products_round_to_tf32_as_control_says": "pto.mad_raw",
    },
    # The type of a view does not say its layout: launches make views inside the program.
    "an argument has no form in compiled code": {
        "test_load::test_a_column_major_view_is_read_by_its_strides": "pto.tload",
        "test_load::test_a_fractal_view_is_read_box_by_box": "pto.tload",
        "test_load::test_columns_run_over_the_outer_dimensions_of_a_dn_view": "pto.tload",
        "test_load::test_part_of_a_fractal_view": "pto.tload",
        "test_load::test_scales_in_boxes_of_sixteen_by_two": "pto.tload",
        "test_store::test_a_fractal_view_is_written_box_by_box": "pto.tstore",
        "test_store::test_columns_far_apart": "pto.tstore",
        "test_compare::test_a_stream_of_bits_does_not_go_into_a_window": "pto.tcmp pto.tcmps",
        "test_direct::test_more_arrays_than_an_agent_can_name": "arith.constant",
    },
    "no emitter": {
        "test_direct::test_an_operation_that_python_does_finds_the_arrays_of_the_call": "pto.tmuls",
    },
}


def require_listed(counts: Iterable[tuple[str, str]], about: str = "") -> None:
    """Every (instruction, reason) is in a table."""
    test = _test()
    for name, why in counts:
        always = HOST_ONLY.get(why, "").split()
        here = GUARDS.get(why, {}).get(test, "").split()
        assert name in always or name in here, (
            f"{name} ran on the host: {why}. If {test} means that, list it in tests/fallbacks.py"
            f"\n{about}"
        )


def _test() -> str:
    """The test that runs, as file::function."""
    path, _, name = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")
    file = path.rpartition("/")[2].removesuffix(".py")
    return f"{file}::{name.partition(' (')[0].partition('[')[0]}"
