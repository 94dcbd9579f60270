package evidence_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/test/golden"
)

const (
	target = "4.19.12"
	image  = "quay.io/openshift-release-dev/ocp-release@sha256:1111111111111111111111111111111111111111111111111111111111111111"
)

func noon() time.Time { return time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC) }

// aws and metal are the environments of two kinds of clusters.
func aws() afterupdate.Environment {
	return afterupdate.Environment{Platform: "AWS", Topology: "HighlyAvailable", Architectures: []string{"amd64"}, NetworkType: "OVNKubernetes"}
}

func metal() afterupdate.Environment {
	made := aws()
	made.Platform, made.LoadBalancer = "BareMetal", "UserManaged"
	return made
}

// judged is the report of a cluster with these regressions; without any, the update was good.
func judged(cluster string, of afterupdate.Environment, names ...string) afterupdate.Report {
	made := afterupdate.Report{
		Cluster:  report.Cluster{ID: cluster},
		Update:   afterupdate.Update{From: "4.18.9", To: target, Image: image, StartTime: "2027-01-02T08:00:00Z", CompletionTime: "2027-01-02T10:00:00Z"},
		Decision: afterupdate.Good, Samples: afterupdate.Samples{Last: "2027-01-02T11:00:00Z"}, Environment: of,
	}
	for _, name := range names {
		made.Decision = afterupdate.Regressed
		made.Counts.Regressions++
		made.Regressions = append(made.Regressions, afterupdate.Regression{Name: name, Object: finding.Object{Kind: "Route", Namespace: "payroll", Name: "salaries"}, Is: "the secret message"})
	}
	return made
}

func of(tb testing.TB, judged afterupdate.Report) evidence.Statement {
	tb.Helper()
	made, err := evidence.Of(judged, "v1.2.3")
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// many are statements of clusters that are alike.
func many(tb testing.TB, prefix string, count int, env afterupdate.Environment, names ...string) []evidence.Statement {
	tb.Helper()
	var all []evidence.Statement
	for i := range count {
		all = append(all, of(tb, judged(fmt.Sprintf("%s-%d", prefix, i), env, names...)))
	}
	return all
}

func join(lists ...[]evidence.Statement) []evidence.Statement {
	var all []evidence.Statement
	for _, each := range lists {
		all = append(all, each...)
	}
	return all
}

type pair struct {
	signer   signature.Signer
	verifier signature.Verifier
}

// keyOf is a key that depends on the name of the cluster alone.
func keyOf(tb testing.TB, cluster string) pair {
	tb.Helper()
	private := ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%032s", cluster))[:ed25519.SeedSize])
	secret, err := cryptoutils.MarshalPrivateKeyToPEM(private)
	if err != nil {
		tb.Fatal(err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := attestation.PrivateKey(secret, nil)
	if err != nil {
		tb.Fatal(err)
	}
	verifier, err := attestation.PublicKey(public)
	if err != nil {
		tb.Fatal(err)
	}
	return pair{signer, verifier}
}

// keys are those of the clusters a and b.
func keys(tb testing.TB) evidence.Keys {
	tb.Helper()
	known := map[string]signature.Verifier{"a": keyOf(tb, "a").verifier, "b": keyOf(tb, "b").verifier}
	return func(cluster string) signature.Verifier { return known[cluster] }
}

func signed(tb testing.TB, stated evidence.Statement, by string) []byte {
	tb.Helper()
	text, err := evidence.Sign(stated, keyOf(tb, by).signer)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func plain(tb testing.TB, stated evidence.Statement) []byte {
	tb.Helper()
	text, err := evidence.Encode(stated)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// changed is an envelope whose payload was changed after it was signed.
func changed(tb testing.TB, envelope []byte, old, replacement string) []byte {
	tb.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal(envelope, &fields); err != nil {
		tb.Fatal(err)
	}
	payload, err := attestation.Claimed(envelope)
	if err != nil || !bytes.Contains(payload, []byte(old)) {
		tb.Fatalf("%s has no %s: %v", payload, old, err)
	}
	fields["payload"] = base64.StdEncoding.EncodeToString(bytes.ReplaceAll(payload, []byte(old), []byte(replacement)))
	text, err := json.Marshal(fields)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// A statement is read by other programs, and names no object of a user.
func TestStatement(t *testing.T) {
	text := plain(t, of(t, judged("1c182977-5663-428d-92a3-3d2bdf3fffb6", metal(), "RouteNotAdmitted", "RouteNotAdmitted", "ClusterOperatorDegraded-ingress")))
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/statement.json", indented.String()+"\n")
	for _, secret := range []string{"payroll", "salaries", "secret message"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the statement has %q", secret)
		}
	}
}

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*afterupdate.Report)
		want   string
	}{
		"Settling":  {"it may become either", func(r *afterupdate.Report) { r.Decision = afterupdate.Settling }, "is not final"},
		"Undecided": {"nothing is known", func(r *afterupdate.Report) { r.Decision = afterupdate.Undecided }, "is not final"},
		"Cluster":   {"a statement counts for one cluster", func(r *afterupdate.Report) { r.Cluster.ID = "" }, "no cluster"},
		"Tag":       {"a tag is no release", func(r *afterupdate.Report) { r.Update.Image = "quay.io/r:4.19.12" }, "no digest"},
		"Time":      {"the newest counts", func(r *afterupdate.Report) { r.Samples.Last = "" }, "when the update was judged"},
		"Names": {"it is bounded", func(r *afterupdate.Report) {
			*r = judged("a", aws())
			for i := range evidence.MaxNames + 9 {
				*r = withRegression(*r, fmt.Sprintf("Finding-%d", i))
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := judged("a", aws())
			tc.change(&r)
			made, err := evidence.Of(r, "")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			if err == nil && (len(made.Regressions) != evidence.MaxNames || made.Unlisted != 9) {
				t.Errorf("%s: %d names, %d left out", tc.reason, len(made.Regressions), made.Unlisted)
			}
		})
	}
}

func withRegression(r afterupdate.Report, name string) afterupdate.Report {
	r.Decision = afterupdate.Regressed
	r.Counts.Regressions++
	r.Regressions = append(r.Regressions, afterupdate.Regression{Name: name})
	return r
}

// Who can forge: a cluster about itself, and no other cluster about it.
func TestWhoCounts(t *testing.T) {
	good, bad := of(t, judged("a", aws())), of(t, judged("a", aws(), "RouteNotAdmitted"))
	for name, tc := range map[string]struct {
		reason string
		text   []byte
		keys   evidence.Keys
		want   string
	}{
		"Signed":        {"the key of the cluster signed it", signed(t, good, "a"), keys(t), ""},
		"Forged":        {"the key of another cluster signed it", signed(t, bad, "b"), keys(t), "another key signed it"},
		"Stranger":      {"no key of the cluster is known", signed(t, of(t, judged("c", aws())), "c"), keys(t), "no public key of the cluster c"},
		"Tampered":      {"the decision was changed", changed(t, signed(t, of(t, judged("a", aws())), "a"), `"AWS"`, `"GCP"`), keys(t), "another key signed it"},
		"Renamed":       {"it was made one of another cluster", changed(t, signed(t, good, "a"), `"cluster":"a"`, `"cluster":"b"`), keys(t), "is not a subject"},
		"Unsigned":      {"keys are given", plain(t, good), keys(t), "it is not signed"},
		"UnsignedAlone": {"no keys are given", plain(t, good), nil, ""},
		"SignedAlone":   {"no keys are given, so that it is not verified", signed(t, good, "a"), nil, ""},
		"Verdict":       {"another kind of statement", []byte(strings.Replace(string(plain(t, good)), "update-judgement", "verdict", 1)), nil, "the predicate of the statement is of the type"},
		"Contradiction": {"it is good and has a regression", []byte(strings.Replace(string(plain(t, bad)), `"decision":"Regressed"`, `"decision":"Good"`, 1)), nil, "the decision is Good, and findings regressed"},
		"NoCause":       {"it regressed by nothing", []byte(strings.Replace(string(plain(t, good)), `"decision":"Good"`, `"decision":"Regressed"`, 1)), nil, "no finding regressed"},
		"Settling":      {"a decision of now", []byte(strings.Replace(string(plain(t, good)), `"decision":"Good"`, `"decision":"Settling"`, 1)), nil, "is not final"},
		"Twice":         {"a name of the JSON is repeated", []byte(strings.Replace(string(plain(t, bad)), `"decision":"Regressed"`, `"decision":"Regressed","decision":"Good"`, 1)), nil, "duplicate"},
		"NoFinding":     {"a name that is no name of a finding", []byte(strings.ReplaceAll(string(plain(t, bad)), "RouteNotAdmitted", "route salaries")), nil, "no name of a finding"},
		"Large":         {"no statement is that large", append(plain(t, good), bytes.Repeat([]byte(" "), evidence.MaxText)...), nil, "larger than 64 KiB"},
		"NoJSON":        {"it is text", []byte("all is well"), nil, "no statement about an update"},
		"Empty":         {"it has nothing", nil, nil, "no statement about an update"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evidence.Read(tc.text, tc.keys)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// What does not count is named, and what one cluster reports of another does not count.
func TestCollect(t *testing.T) {
	good := plain(t, of(t, judged("a", aws())))
	known := evidence.Collect([]evidence.Item{
		{Name: "a.json", Text: good},
		{Name: "b.json", Text: []byte("{}")},
		{Name: "spoke-b", Text: good, Cluster: "b"},
		{Name: "spoke-a", Text: good, Cluster: "A"},
		{Name: "c.json", Problem: "it is no regular file"},
	}, nil)
	refused := strings.Join(known.Refused, "\n")
	if len(known.Statements) != 2 || len(known.Refused) != 3 || len(known.Notices) != 1 {
		t.Fatalf("%d statements, %q, %q", len(known.Statements), known.Refused, known.Notices)
	}
	for _, want := range []string{"b.json: it is no statement", "spoke-b: it is about the cluster a, not about b, which reports it", "c.json: it is no regular file"} {
		if !strings.Contains(refused, want) {
			t.Errorf("%q is not in:\n%s", want, refused)
		}
	}
}

func TestFold(t *testing.T) {
	first, second := of(t, judged("a", aws(), "RouteNotAdmitted")), of(t, judged("A", aws()))
	second.JudgedTime = "2027-01-02T11:30:00Z"
	later := func(text string) []evidence.Statement {
		made := of(t, judged("a", aws()))
		made.JudgedTime = text
		return []evidence.Statement{made}
	}
	other := of(t, judged("a", aws()))
	other.To = "4.19.13"
	back := of(t, judged("r", aws()))
	back.Decision = afterupdate.RolledBack
	own := aws()
	for name, tc := range map[string]struct {
		reason     string
		statements []evidence.Statement
		like       *afterupdate.Environment
		settings   evidence.Settings
		want       string
		alike      evidence.Tally
		met        int
	}{
		"Sentence":     {"what the two that regressed have in common", join(many(t, "g", 12, aws()), many(t, "m", 2, metal(), "IngressCanary")), nil, evidence.Settings{}, "12 of 14 clusters that took 4.19.12 were good; 2 regressed: IngressCanary (both with platform BareMetal, load balancer UserManaged)", evidence.Tally{Good: 12, Regressed: 2}, 0},
		"Nothing":      {"nothing is known", nil, nil, evidence.Settings{}, "no cluster has stated how its update to 4.19.12 was", evidence.Tally{}, 0},
		"OtherTarget":  {"another release", []evidence.Statement{other}, nil, evidence.Settings{}, "no cluster has stated how its update to 4.19.12 was", evidence.Tally{}, 0},
		"Repeated":     {"a cluster counts once", join(many(t, "g", 1, aws()), many(t, "g", 1, aws()), many(t, "g", 1, aws())), nil, evidence.Settings{}, "the update to 4.19.12 of 1 cluster was good", evidence.Tally{Good: 1}, 0},
		"Newest":       {"the last statement counts, in any case of the ID", []evidence.Statement{second, first}, nil, evidence.Settings{}, "the update to 4.19.12 of 1 cluster was good", evidence.Tally{Good: 1}, 0},
		"SameTime":     {"of one time, that against the update counts", join(many(t, "a", 1, aws(), "X"), many(t, "a", 1, aws())), nil, evidence.Settings{}, "the update to 4.19.12 of 1 cluster was not good; 1 regressed: X", evidence.Tally{Regressed: 1}, 0},
		"Future":       {"more than an hour ahead", later("2027-01-02T13:01:00Z"), nil, evidence.Settings{}, "no cluster has stated how its update to 4.19.12 was", evidence.Tally{}, 0},
		"Old":          {"it is older than the limit", later("2027-01-01T11:59:00Z"), nil, evidence.Settings{MaxAge: 24 * time.Hour}, "no cluster has stated how its update to 4.19.12 was", evidence.Tally{}, 0},
		"NothingGood":  {"what all have explains nothing", many(t, "m", 2, metal(), "X"), nil, evidence.Settings{}, "0 of 2 clusters that took 4.19.12 were good; 2 regressed: X", evidence.Tally{Regressed: 2}, 0},
		"RolledBack":   {"it is a cause of its own", []evidence.Statement{back}, nil, evidence.Settings{FailAt: evidence.Threshold{Regressed: 1, Of: 1}}, "the update to 4.19.12 of 1 cluster was not good; 1 rolled back", evidence.Tally{RolledBack: 1}, 1},
		"Alike":        {"only clusters like this one reach the threshold", join(many(t, "g", 2, aws()), many(t, "m", 9, metal(), "X")), &own, evidence.Settings{FailAt: evidence.Threshold{Regressed: 1, Of: 14}}, "2 of 11 clusters that took 4.19.12 were good; 9 regressed: X (all with platform BareMetal, load balancer UserManaged)", evidence.Tally{Good: 2}, 0},
		"LikeAnything": {"the fields are chosen", join(many(t, "g", 2, aws()), many(t, "m", 9, metal(), "X")), &own, evidence.Settings{Like: []evidence.Field{evidence.NetworkType}, FailAt: evidence.Threshold{Regressed: 1, Of: 14}}, "2 of 11 clusters that took 4.19.12 were good; 9 regressed: X (all with platform BareMetal, load balancer UserManaged)", evidence.Tally{Good: 2, Regressed: 9}, 1},
		"Reached":      {"2 of 14 are 2/14", join(many(t, "g", 12, aws()), many(t, "m", 2, aws(), "X")), &own, evidence.Settings{FailAt: evidence.Threshold{Regressed: 2, Of: 14}}, "12 of 14 clusters that took 4.19.12 were good; 2 regressed: X", evidence.Tally{Good: 12, Regressed: 2}, 1},
		"Share":        {"2 of 15 are less than 2/14", join(many(t, "g", 13, aws()), many(t, "m", 2, aws(), "X")), &own, evidence.Settings{FailAt: evidence.Threshold{Regressed: 2, Of: 14}}, "13 of 15 clusters that took 4.19.12 were good; 2 regressed: X", evidence.Tally{Good: 13, Regressed: 2}, 0},
		"Number":       {"1 of 2 is a larger share, and less than 2 clusters", join(many(t, "g", 1, aws()), many(t, "m", 1, aws(), "X")), &own, evidence.Settings{FailAt: evidence.Threshold{Regressed: 2, Of: 14}}, "1 of 2 clusters that took 4.19.12 were good; 1 regressed: X", evidence.Tally{Good: 1, Regressed: 1}, 0},
		"SameFinding":  {"two findings of one cluster each are not one of two", join(many(t, "g", 2, aws()), many(t, "m", 1, aws(), "X"), many(t, "n", 1, aws(), "Y")), &own, evidence.Settings{FailAt: evidence.Threshold{Regressed: 2, Of: 4}}, "2 of 4 clusters that took 4.19.12 were good; 2 regressed: X (1 of them), Y (1 of them)", evidence.Tally{Good: 2, Regressed: 2}, 0},
		"NoThreshold":  {"regressions only warn", many(t, "m", 9, aws(), "X"), &own, evidence.Settings{}, "0 of 9 clusters that took 4.19.12 were good; 9 regressed: X", evidence.Tally{Regressed: 9}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.settings.Now = noon()
			got := evidence.Fold(evidence.Known{Statements: tc.statements}, target, tc.like, tc.settings)
			if outside := name == "Future" || name == "Old"; outside != (len(got.Notices) == 1) {
				t.Errorf("%s: the notices are %q", tc.reason, got.Notices)
			}
			if got.Sentence() != tc.want || got.Alike != tc.alike || len(got.Met) != tc.met {
				t.Errorf("%s: %+v, met %q\n%s\nwant:\n%s", tc.reason, got.Alike, got.Met, got.Sentence(), tc.want)
			}
		})
	}
}

func TestFinding(t *testing.T) {
	own := aws()
	at := evidence.Settings{FailAt: evidence.Threshold{Regressed: 2, Of: 14}}
	for name, tc := range map[string]struct {
		reason     string
		statements []evidence.Statement
		settings   evidence.Settings
		refused    []string
		want       string
	}{
		"Good":         {"all were good", many(t, "g", 3, aws()), at, nil, "Pass GoodElsewhere"},
		"Nothing":      {"nothing known is no pass", nil, at, nil, "Skipped NoStatements"},
		"NoneAlike":    {"others are no pass", many(t, "m", 3, metal()), at, nil, "Skipped NoneAlike"},
		"OthersBad":    {"nothing is known of clusters like this one", many(t, "m", 3, metal(), "X"), at, nil, "Warn RegressedElsewhere"},
		"GoodAlike":    {"those that regressed are others", join(many(t, "g", 2, aws()), many(t, "m", 3, metal(), "X")), at, nil, "Pass GoodElsewhere"},
		"Some":         {"it warns below the threshold", join(many(t, "g", 20, aws()), many(t, "m", 2, aws(), "X")), at, nil, "Warn RegressedElsewhere"},
		"Reached":      {"it blocks", join(many(t, "g", 12, aws()), many(t, "m", 2, aws(), "X")), at, nil, "Fail RegressionThresholdReached"},
		"Off":          {"no threshold never blocks", many(t, "m", 20, aws(), "X"), evidence.Settings{}, nil, "Warn RegressedElsewhere"},
		"Refused":      {"what was refused may be against it", many(t, "g", 3, aws()), at, []string{"b.json: forged"}, "Warn StatementRefused"},
		"RefusedAlone": {"nothing else is known", nil, at, []string{"b.json: forged"}, "Warn StatementRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.settings.Now = noon()
			made := evidence.Finding(evidence.Fold(evidence.Known{Statements: tc.statements, Refused: tc.refused}, target, &own, tc.settings))
			if got := string(made.Outcome) + " " + made.Reason; got != tc.want || made.Name != "Evidence-4.19.12" || made.Source != finding.SourceRisk || !finding.ValidName(made.Name) {
				t.Errorf("%s: %s of %s, want %s: %s", tc.reason, got, made.Name, tc.want, made.Message)
			}
			if tc.refused != nil && !strings.Contains(made.Message, tc.refused[0]) {
				t.Errorf("%s: the message does not name it: %s", tc.reason, made.Message)
			}
		})
	}
}

func TestThresholds(t *testing.T) {
	got := map[string]string{}
	for _, text := range []string{"2/14", "1/1", "3/2", "0/1", "1/0", "1", "", "-1/2", "1 /2", "9999999/9999999"} {
		parsed, err := evidence.ParseThreshold(text)
		got[text] = parsed.String()
		if err != nil {
			got[text] = "refused"
		}
	}
	want := map[string]string{
		"2/14": "2/14", "1/1": "1/1", "3/2": "refused", "0/1": "refused", "1/0": "refused", "1": "refused", "": "refused", "-1/2": "refused", "1 /2": "refused", "9999999/9999999": "refused",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("thresholds (-want, +got):\n%s", diff)
	}
}

// FuzzRead: whatever a text has, it counts only if the key of its cluster signed it.
func FuzzRead(f *testing.F) {
	stated := of(f, judged("a", metal(), "RouteNotAdmitted"))
	f.Add(signed(f, stated, "a"))
	f.Add(plain(f, stated))
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"` + evidence.PredicateType + `","predicate":{}}`))
	known := keys(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := evidence.Read(text, known); err == nil && !cmp.Equal(got, stated) {
			t.Errorf("%q counts", text)
		}
		if got, err := evidence.Read(text, nil); err == nil {
			if _, err := evidence.Encode(got); err != nil || len(got.Regressions) > evidence.MaxNames {
				t.Errorf("%q counts, and makes no statement again: %v", text, err)
			}
		}
	})
}
