"""Where moto is known to behave unlike AWS: module and name of a test of the contract, and what moto does instead.

Each entry is a strict expected failure of that test on moto alone. When moto mends one, the suite fails until the
entry is removed, so the list stays what it says it is. Cases of a parametrised test are named
`test_x[case|other case]`; `*` is every test of the module.
"""

NO_ATTRIBUTE_RULES = "Names, types and values of message attributes are hardly checked."
FORGOTTEN = "A deduplication id is forgotten when its message leaves the queue."
NEW_IDS = "Every send is answered with a message id of its own, duplicates too."
NO_RANGES = "Attributes of a queue are stored without a look at their range."

LIES: dict[str, dict[str, str]] = {
    "test_batches": {
        "test_a_forbidden_character_fails_its_own_entry": "A body is never looked into; all entries are sent.",
        "test_an_empty_batch_is_refused[change_message_visibility_batch]": "Changing nothing is accepted.",
        "test_eleven_entries_are_refused[delete_message_batch]": "Any number of entries is deleted.",
        "test_eleven_entries_are_refused[change_message_visibility_batch]": "Any number of entries is changed.",
        "test_ids_that_repeat_are_refused[delete_message_batch]": "It looks for repeated handles only.",
        "test_ids_that_repeat_are_refused[change_message_visibility_batch]": "Ids of entries are not compared.",
        "test_an_id_that_breaks_the_rules_is_refused[send-accent]": "Letters of any alphabet are taken.",
        "test_an_id_that_breaks_the_rules_is_refused[delete-space]": "Ids of deletions are not checked.",
        "test_an_id_that_breaks_the_rules_is_refused[change-space]": "Ids of changes are not checked.",
    },
    "test_content": {
        "test_ten_attributes_are_the_limit": "Eleven attributes are accepted.",
        "test_an_attribute_name_that_breaks_the_rules_is_refused[AWS|aws|Amazon|AMAZON]": NO_ATTRIBUTE_RULES,
        "test_an_attribute_name_that_breaks_the_rules_is_refused[first-dot|last-dot|two-dots|257]": NO_ATTRIBUTE_RULES,
        "test_an_attribute_value_that_breaks_the_rules_is_refused[type-257|empty|nan]": NO_ATTRIBUTE_RULES,
        "test_an_attribute_value_that_breaks_the_rules_is_refused[empty-binary|no-value]": NO_ATTRIBUTE_RULES,
        "test_an_empty_body_is_refused": "A message without a body is accepted.",
        "test_a_character_outside_the_allowed_set_is_refused": "A body is never looked into.",
        "test_a_character_outside_the_allowed_set_is_refused_in_an_attribute": "A value is never looked into.",
        "test_the_trace_header_has_a_digest_of_its_own": "System attributes have no digest.",
        "test_a_trace_header_travels_in_a_batch": "System attributes of batch entries are dropped.",
        "test_a_group_id_on_a_standard_queue_obeys_the_rules": "Group ids are not checked.",
        "test_no_other_system_attribute_can_be_sent": "Any system attribute of any type is accepted.",
    },
    "test_deduplication": {
        "test_a_duplicate_is_answered_with_the_first_message_id": NEW_IDS,
        "test_deduplication_outlives_the_deletion_for_five_minutes": FORGOTTEN,
        "test_content_deduplication_outlives_the_deletion": FORGOTTEN,
        "test_an_id_counts_for_its_group_where_the_scope_is_the_group": "Ids count for the whole queue, always.",
        "test_senders_at_once_with_one_id_all_succeed_and_one_message_is_delivered": NEW_IDS,
        "test_a_dead_message_sent_back_under_its_first_id_is_swallowed": FORGOTTEN,
        "test_a_dead_message_sent_back_with_its_body_is_swallowed_where_content_decides": FORGOTTEN,
    },
    "test_delays": {
        "test_a_delay_beyond_its_range_is_refused[-1]": "A negative delay is accepted.",
        "test_a_new_delay_reaches_waiting_messages_of_a_fifo_queue": "A new delay is for new messages only.",
    },
    "test_errors": {
        "test_a_name_deleted_a_moment_ago": "A deleted name is free at once.",
        "test_a_message_that_is_not_in_flight": "A visible message can be hidden.",
        "test_a_forbidden_character": "A body is never looked into.",
        "test_an_attribute_value_out_of_range": NO_RANGES,
        "test_a_parameter_out_of_range": "QueryErrorCode says InvalidParameterValue, without Exception.",
        "test_a_missing_move_task_source": "Message move tasks are not implemented.",
    },
    "test_fifo": {
        "test_one_receive_returns_as_many_of_one_group_as_it_can": "Messages come in the order of sending.",
        "test_a_group_comes_again_in_order_when_its_timeout_has_passed": "Of four that expired only the last comes.",
        "test_what_expired_comes_before_its_successors": "The head stays behind and its successors come.",
        "test_sequence_numbers_rise_and_are_received_as_sent": "Sequence numbers are random.",
        "test_a_message_deduplicated_by_content_has_a_sequence_number": "It has none.",
        "test_an_id_that_breaks_the_rules_is_refused[MessageGroupId-empty]": "An empty group id counts as missing.",
        "test_an_id_that_breaks_the_rules_is_refused[MessageGroupId-129]": "Group ids are not checked.",
        "test_an_id_that_breaks_the_rules_is_refused[MessageGroupId-space]": "Group ids are not checked.",
        "test_an_id_that_breaks_the_rules_is_refused[MessageGroupId-accent]": "Group ids are not checked.",
        "test_an_id_that_breaks_the_rules_is_refused[MessageDeduplicationId-129]": "Such ids are not checked.",
        "test_an_id_that_breaks_the_rules_is_refused[MessageDeduplicationId-space]": "Such ids are not checked.",
        "test_an_id_that_breaks_the_rules_is_refused[MessageDeduplicationId-accent]": "Such ids are not checked.",
        "test_a_receive_repeated_under_its_attempt_id_returns_the_same_messages_and_handles": "The id is ignored.",
        "test_a_repeated_receive_resets_the_timeout": "The attempt id is ignored.",
        "test_a_head_that_was_given_back_comes_again_before_its_successor_in_flight": "The group stays blocked.",
    },
    "test_move_tasks": {"*": "Message move tasks are not implemented: every call of them ends in a 500."},
    "test_queues": {
        "test_an_unknown_attribute_name_is_refused": "An unknown attribute can be set.",
        "test_timestamps_of_a_queue_are_whole_seconds": "They have a fraction.",
        "test_an_attribute_beyond_its_range_is_refused": NO_RANGES,
        "test_the_type_of_a_queue_cannot_change": "A standard queue becomes a FIFO queue when told so.",
        "test_a_name_that_breaks_the_rules_is_refused[fifo-suffix-on-standard]": "A standard queue may end so.",
        "test_a_deleted_name_is_free_after_sixty_seconds": "A deleted name is free at once.",
        "test_deduplication_settings_belong_to_fifo_queues": "A standard queue takes them.",
        "test_a_page_has_one_to_a_thousand_queues": "Any number is accepted.",
        "test_a_throughput_per_group_needs_deduplication_per_group": "It is accepted alone.",
    },
    "test_redrive": {
        "test_a_dead_message_names_the_queue_it_died_in": "DeadLetterQueueSourceArn does not exist.",
        "test_the_source_can_be_asked_for_by_name": "DeadLetterQueueSourceArn does not exist.",
        "test_a_group_keeps_its_order_in_the_dlq": "The last message of the group arrives first.",
        "test_a_fifo_dlq_takes_the_message_id_as_deduplication_id": "The deduplication id is kept.",
        "test_two_messages_with_the_same_deduplication_id_both_reach_the_dlq": "One of the two is lost as a duplicate.",
        "test_a_maximum_beyond_its_range_is_refused": "Any number is accepted, and a word ends in a 500.",
        "test_a_dlq_of_the_other_type_is_refused[True]": "The code is InvalidParameterCombination.",
        "test_a_dlq_of_the_other_type_is_refused[False]": "A standard queue may have a FIFO dlq.",
        "test_a_dlq_that_does_not_exist_is_refused": "The code is that of a missing queue, not of a wrong value.",
        "test_a_malformed_policy_is_refused[text]": "What is not JSON ends in a 500.",
        "test_an_allow_policy_is_stored": "RedriveAllowPolicy is an unknown attribute.",
        "test_a_dlq_that_denies_all_is_refused": "RedriveAllowPolicy is not obeyed.",
        "test_a_dlq_may_allow_some_queues": "RedriveAllowPolicy is not obeyed.",
        "test_an_allow_policy_that_breaks_the_rules_is_refused": "RedriveAllowPolicy is not looked into.",
        "test_the_sources_of_a_dlq_are_listed_in_pages": "They are listed all at once.",
    },
    "test_retention": {
        "test_a_message_is_gone_when_its_retention_has_passed": "It still counts, and hides what was sent after it.",
        "test_a_message_in_flight_expires_too": "An expired message still counts.",
        "test_a_shorter_retention_reaches_messages_that_wait": "An expired message still counts.",
        "test_an_expired_head_does_not_block_its_group": "An expired head blocks its group.",
        "test_a_standard_dlq_counts_from_the_first_send": "An expired message still counts.",
        "test_a_fifo_dlq_counts_from_the_death": "A FIFO dlq counts from the first send.",
    },
    "test_sizes": {
        "test_one_entry_over_the_queues_limit_fails_alone": "One entry that is too long refuses the whole batch.",
        "test_size_is_counted_in_bytes": "Characters are counted.",
        "test_size_counts_names_types_and_values_of_attributes": "Attributes are not counted.",
        "test_a_batch_counts_bytes_and_attributes": "Characters of the bodies alone are counted.",
    },
    "test_visibility": {
        "test_a_receive_refuses_a_timeout_beyond_the_range[-1]": "A negative timeout is accepted.",
        "test_a_change_refuses_a_timeout_beyond_the_range[-1]": "A negative timeout is accepted.",
        "test_hiding_ends_twelve_hours_after_the_receive": "Twelve hours are counted from the sending.",
        "test_a_deleted_message_cannot_be_hidden": "The code is ReceiptHandleIsInvalid.",
        "test_an_expired_handle_cannot_delete_from_a_fifo_queue": "It deletes.",
        "test_an_old_handle_cannot_delete_what_another_consumer_of_a_fifo_queue_holds": "It deletes.",
        "test_an_expired_handle_fails_in_a_batch_of_a_fifo_queue": "It deletes.",
    },
}
