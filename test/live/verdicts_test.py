#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The judge of the demonstration must be able to say `wrong`."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import verdicts
from verdicts import MS

HANG, COMPUTE = ("service", "hang"), ("service", "compute")


def request(client, send_ms, done_ms):
    return {"client": client, "t_send": send_ms * MS, "t_done": done_ms * MS}


def rpc(client, first_ms, latency_ms, root, *alternatives):
    return {"client": client, "t_request_first": str(first_ms * MS), "latency_ns": latency_ms * MS,
            "terms": [{"buffer": root[0], "cause": root[1], "ns": latency_ms * MS}],
            "root_cause": {"buffer": root[0], "cause": root[1], "alternatives": [
                {"buffer": b, "cause": c} for b, c in alternatives]}}


class Judge(unittest.TestCase):
    def setUp(self):
        self.verdict = verdicts.Verdict()

    def test_hits_are_the_requests_open_long_enough_in_the_fault(self):
        requests = [request("a", 0, 99), request("a", 50, 150), request("a", 90, 95),
                    request("b", 190, 400)]
        self.assertEqual(verdicts.hits(requests, 100 * MS, 200 * MS, 20 * MS), [requests[1]])

    def test_requests_match_the_nearest_rpc_of_their_connection_once(self):
        requests = [request("a", 10, 20), request("a", 12, 20), request("b", 13, 20)]
        rpcs = [rpc("a", 12, 8, HANG), rpc("a", 11, 8, HANG), rpc("b", 40, 8, HANG)]
        pairs = verdicts.match(requests, rpcs, 5 * MS)
        self.assertEqual([found for _, found in pairs], [rpcs[1], rpcs[0], None])

    def test_missed_requests_are_wrong(self):
        self.verdict.found([({}, {"id": 1}), ({}, None)])
        self.assertFalse(self.verdict.right)

    def test_no_hit_request_is_wrong(self):
        self.verdict.found([])
        self.assertFalse(self.verdict.right)

    def test_another_cause_is_wrong(self):
        self.verdict.blame([rpc("a", 0, 9, COMPUTE)], [{HANG}], "RPCs")
        self.assertFalse(self.verdict.right)

    def test_a_singleton_in_place_of_the_set_is_wrong(self):
        self.verdict.blame([rpc("a", 0, 9, HANG)], [{HANG, COMPUTE}], "RPCs")
        self.assertFalse(self.verdict.right)

    def test_the_set_is_right_whichever_member_leads(self):
        self.verdict.blame([rpc("a", 0, 9, COMPUTE, HANG)], [{HANG, COMPUTE}], "RPCs")
        self.assertTrue(self.verdict.right)

    def test_a_hang_among_the_alternatives_is_noticed(self):
        self.verdict.never([rpc("a", 0, 9, COMPUTE, HANG)], HANG)
        self.assertFalse(self.verdict.right)

    def test_a_hang_elsewhere_is_another_matter(self):
        self.verdict.never([rpc("a", 0, 9, ("wire.rx", "hang"))], HANG)
        self.assertTrue(self.verdict.right)

    def test_the_incident_of_another_origin_is_wrong(self):
        incident = {"id": "7", "origin": {"buffer": "service", "cause": "compute"}}
        behind = dict(rpc("a", 0, 9, ("service", "contention")), incident="7")
        self.verdict.origin([behind], [incident], [COMPUTE], "RPCs")
        self.assertTrue(self.verdict.right)
        self.verdict.origin([behind], [incident], [HANG], "RPCs")
        self.assertFalse(self.verdict.right)

    def test_no_incident_is_wrong(self):
        lonely = dict(rpc("a", 0, 9, HANG), incident=None)
        self.verdict.origin([lonely], [], [HANG], "RPCs")
        self.assertFalse(self.verdict.right)

    def test_first_of_each_connection(self):
        pairs = [(request("a", 12, 20), {"id": 1}), (request("a", 10, 20), {"id": 2}),
                 (request("b", 10, 20), None)]
        self.assertEqual(verdicts.first_of_connections(pairs), [{"id": 2}])

    def test_time_outside_the_tolerance_is_wrong(self):
        self.verdict.time(rpc("a", 0, 200, HANG), {HANG}, 180 * MS, 20 * MS, "x")
        self.assertTrue(self.verdict.right)
        self.verdict.time(rpc("a", 0, 200, HANG), {HANG}, 179 * MS, 20 * MS, "x")
        self.assertFalse(self.verdict.right)

    def test_an_incident_elsewhere_in_time_does_not_count(self):
        incident = {"origin": {"buffer": "service", "cause": "hang"},
                    "t_begin": str(500 * MS), "t_end": str(600 * MS)}
        self.verdict.incident([incident], 0, 100 * MS, [HANG], 50 * MS)
        self.assertFalse(self.verdict.right)

    def test_an_incident_that_goes_on_counts(self):
        incident = {"origin": {"buffer": "service", "cause": "hang"},
                    "t_begin": str(50 * MS), "t_end": None}
        self.verdict.incident([incident], 0, 100 * MS, [HANG], 50 * MS)
        self.assertTrue(self.verdict.right)


unittest.main()
