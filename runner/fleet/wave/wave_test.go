package wave_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/test/golden"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func limit(t *testing.T, text string) wave.Limit {
	t.Helper()
	parsed, err := wave.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// at is a cluster whose stage is of so long ago.
func at(stage wave.Stage, ago time.Duration) wave.Progress {
	return wave.Progress{Name: "spoke", Stage: stage, Since: noon().Add(-ago)}
}

func times(count int, cluster wave.Progress) []wave.Progress {
	var all []wave.Progress
	for i := range count {
		cluster.Name = fmt.Sprintf("%s-%03d", strings.ToLower(string(cluster.Stage)), i)
		all = append(all, cluster)
	}
	return all
}

func join(lists ...[]wave.Progress) []wave.Progress {
	var all []wave.Progress
	for _, each := range lists {
		all = append(all, each...)
	}
	return all
}

func TestStatuses(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		reason  string
		cluster wave.Progress
		want    wave.Status
	}{
		"Soaked":      {"it was successful for minSuccessTime", at(wave.Updated, day), wave.Succeeded},
		"Soaking":     {"a minute is missing", at(wave.Updated, day-time.Minute), wave.Progressing},
		"SkewedClock": {"a clock that is ahead makes the gate wait longer", at(wave.Updated, -59*time.Minute), wave.Progressing},
		"FutureClock": {"a time of the future proves nothing", at(wave.Updated, -2*time.Hour), wave.Unknown},
		"NoTime":      {"a soak has a beginning", wave.Progress{Stage: wave.Updated}, wave.Unknown},
		"Updating":    {"it is within the deadline", at(wave.Updating, 2*time.Hour), wave.Progressing},
		"TimeOut":     {"progressDeadline has passed", at(wave.Updating, 3*time.Hour), wave.TimeOut},
		"Outstanding": {"it has not begun", at(wave.Outstanding, 0), wave.ToApply},
		"Broken":      {"an update that fails is not waited for", at(wave.Broken, time.Hour), wave.Failed},
		"Silent":      {"a cluster that does not answer never succeeds", wave.Progress{Stage: wave.Silent}, wave.Unknown},
		"SilentSoak":  {"neither by an old time", at(wave.Silent, 9*day), wave.Unknown},
		"NoStage":     {"a stage of a later version proves nothing", at("Finished", 9*day), wave.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			gate := wave.Decide(wave.Strategy{To: "4.19.12", MinSuccessTime: day, ProgressDeadline: 150 * time.Minute}, []wave.Progress{tc.cluster},
				noon())
			if got := gate.Clusters[0]; got.Status != tc.want || (got.Message == "") != (tc.want == wave.Succeeded) {
				t.Errorf("%s: want %s, got %s: %s", tc.reason, tc.want, got.Status, got.Message)
			}
		})
	}
}

// The soak begins when the update was judged as Good, and what regressed has failed.
func TestJudgements(t *testing.T) {
	const day = 24 * time.Hour
	judged := func(cluster wave.Progress, status string, ago time.Duration) wave.Progress {
		cluster.Judgement = &wave.Judgement{Status: status, Since: noon().Add(-ago), Message: "the message"}
		return cluster
	}
	updated := at(wave.Updated, 9*day)
	untimed := judged(updated, "True", day)
	untimed.Judgement.Since = time.Time{}
	for name, tc := range map[string]struct {
		reason  string
		cluster wave.Progress
		soak    time.Duration
		want    wave.Status
	}{
		"Good":   {"it is good for the soak", judged(updated, "True", day), day, wave.Succeeded},
		"Lately": {"the time before it was judged does not count", judged(updated, "True", day-time.Minute), day, wave.Progressing},
		"Again": {
			"neither does a judgement of before it was updated again", judged(at(wave.Updated, time.Hour), "True", 9*day), day,
			wave.Progressing,
		},
		"Waiting":  {"it is not decided", judged(updated, "Unknown", 9*day), day, wave.Progressing},
		"Unstated": {"a controller that does not judge proves nothing", judged(updated, "", 9*day), day, wave.Unknown},
		"Other":    {"a status of a later version proves nothing", judged(updated, "Fine", 9*day), day, wave.Unknown},
		"Untimed":  {"a soak has a beginning", untimed, day, wave.Unknown},
		"NoSoak": {
			"without a soak as well, what was stored before the update counts only by a judgement", judged(updated, "Unknown", 0), 0,
			wave.Progressing,
		},
		"UnstatedNow":  {"without a soak, a cluster that stores nothing is done when it is updated", judged(updated, "", 0), 0, wave.Succeeded},
		"GoodNow":      {"without a soak, Good counts at once", judged(updated, "True", 0), 0, wave.Succeeded},
		"Regressed":    {"it failed", judged(updated, "False", 0), day, wave.Failed},
		"RegressedNow": {"also without a soak", judged(updated, "False", 0), 0, wave.Failed},
		"RolledBack":   {"it does not run the release any more", judged(at(wave.Outstanding, 0), "False", 0), 0, wave.Failed},
		"Broken":       {"it is not healthy any more", judged(at(wave.Broken, day), "True", 9*day), day, wave.Failed},
		"NotAsked":     {"a table without judgements counts from the update on", updated, day, wave.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			gate := wave.Decide(wave.Strategy{To: "4.19.12", MinSuccessTime: tc.soak}, []wave.Progress{tc.cluster}, noon())
			if got := gate.Clusters[0]; got.Status != tc.want || (got.Message == "") != (tc.want == wave.Succeeded) {
				t.Errorf("%s: want %s, got %s: %s", tc.reason, tc.want, got.Status, got.Message)
			}
		})
	}
}

func TestDecisions(t *testing.T) {
	good, bad := at(wave.Updated, time.Hour), at(wave.Broken, time.Hour)
	for name, tc := range map[string]struct {
		reason   string
		max      string
		clusters []wave.Progress
		want     string
	}{
		"All":            {"all succeeded", "0", times(20, good), "Ready"},
		"None":           {"an empty wave proves nothing", "100%", nil, "Undecided"},
		"OneFailed":      {"none may fail by default", "0", join(times(19, good), times(1, bad)), "Blocked"},
		"Tolerated":      {"one of twenty is 5 %", "5%", join(times(19, good), times(1, bad)), "Ready"},
		"TooManyMayFail": {"OCM takes a number of more clusters than there are for 0", "20", join(times(18, good), times(1, bad)), "Blocked"},
		"PartOfACluster": {"5 % of nineteen clusters are one, rounded up as OCM does", "5%", join(times(18, good), times(1, bad)), "Ready"},
		"Number":         {"two may fail", "2", join(times(3, good), times(2, bad)), "Ready"},
		"TooMany":        {"three failed", "2", join(times(3, good), times(3, bad)), "Blocked"},
		"AllFailed":      {"no success is no success", "100%", times(3, bad), "Undecided"},
		"Waiting": {
			"one is not updated for long enough", "100%", join(times(19, good), times(1, at(wave.Updated, time.Minute))),
			"Undecided",
		},
		"Outstanding": {"one has not begun", "100%", join(times(19, good), times(1, at(wave.Outstanding, 0))), "Undecided"},
		"Silent": {
			"maxFailures is not for clusters that do not answer", "100%", join(times(19, good), times(1, at(wave.Silent, 0))),
			"Undecided",
		},
		"FailedFirst": {
			"what has failed does not become better by waiting", "0", join(times(1, bad), times(1, at(wave.Silent, 0))),
			"Blocked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			gate := wave.Decide(wave.Strategy{MinSuccessTime: 30 * time.Minute, MaxFailures: limit(t, tc.max)}, tc.clusters, noon())
			if string(gate.Decision) != tc.want || gate.Message == "" {
				t.Errorf("%s: want %s, got %s: %s", tc.reason, tc.want, gate.Decision, gate.Message)
			}
		})
	}
}

// A Placement may drop clusters, which does not open the gate.
func TestIncomplete(t *testing.T) {
	strategy := wave.Strategy{Incomplete: "clusters are missing"}
	if got := wave.Decide(strategy, times(3, at(wave.Updated, time.Hour)), noon()); got.Decision != "Undecided" ||
		got.Message != strategy.Incomplete {
		t.Errorf("want Undecided, got %s: %s", got.Decision, got.Message)
	}
	if got := wave.Decide(strategy, times(3, at(wave.Broken, time.Hour)), noon()); got.Decision != "Blocked" {
		t.Errorf("what has failed stays so: got %s", got.Decision)
	}
}

func TestLimits(t *testing.T) {
	got := map[string]string{}
	for _, text := range []string{"0", "3", "39", "40", "5%", "100%", "101%", "-1", "5 %", "", "%", "1.5%", "9999999999"} {
		parsed, err := wave.ParseLimit(text)
		got[text] = fmt.Sprintf("%s: %d of 39", parsed, parsed.Of(39))
		if err != nil {
			got[text] = "refused"
		}
	}
	want := map[string]string{
		"0": "0: 0 of 39", "3": "3: 3 of 39", "5%": "5%: 2 of 39", "39": "39: 39 of 39", "40": "40: 0 of 39", "100%": "100%: 39 of 39",
		"101%": "refused", "-1": "refused", "5 %": "refused", "": "refused", "%": "refused", "1.5%": "refused", "9999999999": "refused",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits (-want, +got):\n%s", diff)
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	hostile := wave.Progress{
		Name: "evil\x1b[2J" + strings.Repeat("x", 10_000), Stage: wave.Broken,
		Message: "<script>\x1b]0;" + strings.Repeat("y", 10_000),
	}
	gates := map[string]wave.Gate{
		"ready": wave.Decide(wave.Strategy{To: "4.19.12", Wave: "canary", MinSuccessTime: time.Hour, MaxFailures: limit(t, "5%")},
			times(30, at(wave.Updated, time.Hour)), noon()),
		"blocked": wave.Decide(wave.Strategy{To: "4.19.12", Wave: "canary"},
			join(times(2, at(wave.Updated, time.Hour)), []wave.Progress{hostile}), noon()),
		"waiting": wave.Decide(wave.Strategy{To: "4.19.12", MinSuccessTime: 24 * time.Hour},
			join(times(1, at(wave.Updated, time.Hour)), times(2, at(wave.Silent, 0)), times(1, at(wave.Outstanding, 0))), noon()),
	}
	for name, gate := range gates {
		for _, output := range []string{"text", "json", "html"} {
			var text bytes.Buffer
			if err := format.Write(&text, output, gate, format.Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/"+name+"."+output, text.Bytes())
		}
	}
}

// A row of a table counts only if it is of now, of this release, and states how far the update is.
func TestOfTable(t *testing.T) {
	row := func(change func(*fleet.Row)) fleet.Row {
		made := fleet.Row{
			Cluster: fleet.Cluster{Name: "a"}, State: fleet.Clear, Target: "4.19.12", Observed: "2026-11-22T11:30:00Z",
			Update: &fleet.Update{Stage: "Updated", Since: "2026-11-21T11:00:00Z"},
		}
		change(&made)
		return made
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*fleet.Row)
		stage  wave.Stage
		want   string
	}{
		"Updated": {"it was read half an hour ago", func(*fleet.Row) {}, wave.Updated, ""},
		"Blocked": {
			"what is against another update does not undo this one", func(r *fleet.Row) { r.State = fleet.Blocked }, wave.Updated,
			"",
		},
		"Broken": {
			"a degraded pool", func(r *fleet.Row) { r.Update = &fleet.Update{Stage: "Broken", Message: "degraded"} }, wave.Broken,
			"degraded",
		},
		"Old": {
			"it may have changed since", func(r *fleet.Row) { r.Observed = "2026-11-22T10:59:00Z" }, wave.Silent,
			"older than 1h0m0s: create the table again",
		},
		"Future":   {"its age is unknown", func(r *fleet.Row) { r.Observed = "2026-11-22T13:01:00Z" }, wave.Silent, "ahead of the clock"},
		"Untimed":  {"its age is unknown", func(r *fleet.Row) { r.Observed = "" }, wave.Silent, "does not contain when"},
		"Unstated": {"an earlier version of the program", func(r *fleet.Row) { r.Update = nil }, wave.Silent, "does not contain how far"},
		"Other":    {"another release", func(r *fleet.Row) { r.Target = "4.19.11" }, wave.Silent, "not 4.19.12"},
		"Unreachable": {
			"a row of before that stayed", func(r *fleet.Row) { r.State, r.Message = fleet.Unreachable, "timeout" }, wave.Silent,
			"Unreachable; timeout",
		},
		"Regressed": {
			"it states that the update was not good", func(r *fleet.Row) { r.Update.Judgement = &fleet.Judgement{Status: "False"} },
			wave.Updated, "",
		},
		"Good": {"it states that the update was good since the day before", func(r *fleet.Row) {
			r.Update.Judgement = &fleet.Judgement{Status: "True", Since: "2026-11-21T11:30:00Z"}
		}, wave.Updated, ""},
		"NotRead": {
			"the judgement of the cluster is not read", func(r *fleet.Row) { r.Update.Judgement = &fleet.Judgement{Status: "Unknown"} },
			wave.Updated, "",
		},
		"Unknown": {"a stage of a later version", func(r *fleet.Row) { r.Update.Stage = "Fine" }, "Fine", ""},
	} {
		t.Run(name, func(t *testing.T) {
			table := fleet.Of("4.19.12", []fleet.Row{row(tc.change)})
			clusters, err := wave.OfTable(table, "4.19.12", time.Hour, noon())
			if err != nil || len(clusters) != 1 {
				t.Fatal(clusters, err)
			}
			if got := clusters[0]; got.Stage != tc.stage || !strings.Contains(got.Message, tc.want) {
				t.Errorf("%s: %s, %q; want %s, %q", tc.reason, got.Stage, got.Message, tc.stage, tc.want)
			}
			gate := wave.Decide(wave.Strategy{To: "4.19.12", MinSuccessTime: 24 * time.Hour}, clusters, noon())
			if (gate.Decision == verdict.Ready) != (tc.stage == wave.Updated && (clusters[0].Judgement == nil || name == "Good")) {
				t.Errorf("%s: the gate is %s", tc.reason, gate.Decision)
			}
		})
	}
}

// What two clusters of one ID state counts for neither, and does not open the gate.
func TestTableOfTwoClustersWithOneID(t *testing.T) {
	spoke := func(name string) fleet.Row {
		return fleet.Row{
			Cluster: fleet.Cluster{Name: name, ID: "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18", Source: "hub"}, State: fleet.Clear, Target: "4.19.12",
			Observed: "2026-11-22T11:30:00Z", Update: &fleet.Update{Stage: "Updated", Since: "2026-11-21T11:00:00Z"},
		}
	}
	clusters, err := wave.OfTable(fleet.Of("4.19.12", []fleet.Row{spoke("a"), spoke("b")}), "4.19.12", time.Hour, noon())
	if err != nil || len(clusters) != 2 {
		t.Fatal(clusters, err)
	}
	for _, cluster := range clusters {
		if cluster.Stage != wave.Silent {
			t.Errorf("%s is %s, want Silent", cluster.Name, cluster.Stage)
		}
	}
}

// A stored table answers one question: each field states whether another value makes it the answer to another
// one, or one that is not known.
func TestEachFieldOfATableIsDeclared(t *testing.T) {
	const (
		question = "question" // another value is another question
		answer   = "answer"   // it is what is known about the clusters
		display  = "display"  // it decides nothing
	)
	table := fleet.Of("4.19.12", []fleet.Row{{
		Cluster: fleet.Cluster{Name: "a"}, State: fleet.Clear, Target: "4.19.12", Observed: "2026-11-22T11:30:00Z",
		Update: &fleet.Update{Stage: "Updated"},
	}})
	declared := map[string]string{
		"Table.APIVersion": question, "Table.Kind": question, "Table.Target": question,
		"Table.Rows": answer, "Row.LastUpdate": display, "Table.Time": display, "Table.ToolVersion": display, "Table.Decision": display,
		"Table.Counts": display,
		"Table.Groups": display, "Table.Notices": display, "Table.Actions": display,
		"Row.Target": question, "Row.Observed": question, "Row.State": answer, "Row.Update": answer, "Row.Cluster": answer,
		"Row.Message": display, "Row.Version": display, "Row.Targets": display, "Row.Causes": display, "Row.Until": display,
		"Row.Evidence": display,
	}
	counts := func() bool {
		clusters, err := wave.OfTable(table, "4.19.12", time.Hour, noon())
		return err == nil && len(clusters) == 1 && clusters[0].Stage == wave.Updated
	}
	if !counts() {
		t.Fatal("the table is not the answer")
	}
	for name, of := range map[string]reflect.Value{"Table": reflect.ValueOf(&table).Elem(), "Row": reflect.ValueOf(&table.Rows[0]).Elem()} {
		for i := range of.NumField() {
			path, field := name+"."+of.Type().Field(i).Name, of.Field(i)
			effect := declared[path]
			before := reflect.New(field.Type()).Elem()
			before.Set(field)
			field.SetZero()
			if holds := counts(); effect == "" || effect == question && holds || effect == display && !holds {
				t.Errorf("%s is declared as %q; without it the table is the answer: %t", path, effect, holds)
			}
			field.Set(before)
		}
	}
}

// Another document does not open or close a gate.
func TestForeignTable(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		table  fleet.Table
		want   string
	}{
		"Kind":    {"a report", fleet.Table{APIVersion: "v1", Kind: "PreflightReport"}, "it is not a table of a fleet"},
		"Release": {"the wave before", fleet.Of("4.19.11", nil), "about 4.19.11, not 4.19.12"},
		"Best":    {"each row has a target of its own", fleet.Of("", nil), "the best update of each cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := wave.OfTable(tc.table, "4.19.12", time.Hour, noon()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
