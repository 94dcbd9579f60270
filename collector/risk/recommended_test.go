package risk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/prometheus"
)

type results = map[string]checktest.Result

var (
	fails  = checktest.Result{Outcome: preflight.Fail, Reason: "RiskApplies"}
	passes = checktest.Result{Outcome: preflight.Pass, Reason: "RiskDoesNotApply"}
)

func unknown(reason string) checktest.Result {
	return checktest.Result{Outcome: preflight.Unknown, Reason: reason}
}

func warns(reason string) checktest.Result {
	return checktest.Result{Outcome: preflight.Warn, Reason: reason}
}

// The cluster's assessment counts where it is unambiguous, on the default feature
// set, which has one condition for all risks of an update.
func TestAssessmentsOfTheCluster(t *testing.T) {
	const target = "4.18.16"
	both := conditional(target, promql("Applying", applies), promql("Sparing", spares))
	longer, sameText := promql("Longer", applies), promql("Twin", applies)
	longer.Message, longer.URL = "Applying breaks things.", "https://example.com/Applying-too"
	sameText.Message, sameText.URL = "Applying breaks things.", "https://example.com/Applying"
	for name, tc := range map[string]struct {
		reason string
		update configv1.ConditionalUpdate
		want   results // without monitoring, so that only the assessment counts
	}{
		"Recommended": {
			reason: "a recommended update has no risk that applies",
			update: recommended(both, metav1.ConditionTrue, "NotExposedToRisks", "The update is recommended."),
			want:   results{"Applying": passes, "Sparing": passes},
		},
		"OneNamed": {
			reason: "the reason is the name of the only risk that applies",
			update: recommended(both, metav1.ConditionFalse, "Applying", "Applying breaks things. https://example.com/Applying"),
			want:   results{"Applying": fails, "Sparing": passes},
		},
		"Several": {
			reason: "MultipleReasons names no risk, but the message has the text of those that apply",
			update: recommended(both, metav1.ConditionFalse, "MultipleReasons",
				"Applying breaks things. https://example.com/Applying\n\nCould not evaluate exposure to update risk Sparing (boom)"),
			want: results{"Applying": fails, "Sparing": unknown("NoMonitoring")},
		},
		"FormerlyUnknown": {
			reason: "up to 4.13 the text of a risk that could not be evaluated ends with that of one that applies",
			update: recommended(both, metav1.ConditionUnknown, "EvaluationFailed", formerly("Applying")),
			want:   results{"Applying": unknown("NoMonitoring"), "Sparing": passes},
		},
		"FormerlySeveral": {
			reason: "up to 4.13 one risk applies, and the other could not be evaluated",
			update: recommended(both, metav1.ConditionFalse, "MultipleReasons",
				"Applying breaks things. https://example.com/Applying\n\n"+formerly("Sparing")),
			want: results{"Applying": fails, "Sparing": unknown("NoMonitoring")},
		},
		"ListsOne": {
			reason: "CVO lists every risk that applies or could not be evaluated",
			update: recommended(both, metav1.ConditionUnknown, "EvaluationFailed", failedToEvaluate("Applying")),
			want:   results{"Applying": unknown("NoMonitoring"), "Sparing": passes},
		},
		"ListsTwoOfThree": {
			reason: "a risk that MultipleReasons does not list does not apply",
			update: recommended(conditional(target, promql("Applying", applies), promql("Failing", spares), promql("Sparing", spares)),
				metav1.ConditionFalse, "MultipleReasons",
				"Applying breaks things. https://example.com/Applying\n\n"+failedToEvaluate("Failing")),
			want: results{"Applying": fails, "Failing": unknown("NoMonitoring"), "Sparing": passes},
		},
		"ListsMore": {
			reason: "a message with other text may list a risk in another form",
			update: recommended(both, metav1.ConditionFalse, "MultipleReasons",
				"Applying breaks things. https://example.com/Applying\n\nThe cluster has another problem."),
			want: results{"Applying": fails, "Sparing": unknown("NoMonitoring")},
		},
		"ListsAPrefix": {
			reason: "the text of one risk is the beginning of that of another",
			update: recommended(conditional(target, promql("Applying", applies), longer), metav1.ConditionFalse, "MultipleReasons",
				longer.Message+" "+longer.URL),
			want: results{"Applying": passes, "Longer": fails},
		},
		"ListsATwin": {
			reason: "two risks with the same text apply where it is listed once",
			update: recommended(conditional(target, promql("Applying", applies), sameText), metav1.ConditionFalse, "MultipleReasons",
				"Applying breaks things. https://example.com/Applying"),
			want: results{"Applying": fails, "Twin": fails},
		},
		"Exposed": {
			reason: "another reason of CVO names no risk",
			update: recommended(both, metav1.ConditionFalse, "ExposedToRisks", "Something."),
			want:   results{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"Failed": {
			reason: "without monitoring, a risk that the cluster could not evaluate is unknown",
			update: recommended(both, metav1.ConditionUnknown, "EvaluationFailed", "Could not evaluate exposure to update risk Applying (boom)"),
			want:   results{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"Throttled": {
			reason: "CVO has not evaluated the risks yet",
			update: recommended(both, metav1.ConditionUnknown, "EvaluationFailed",
				"Could not evaluate exposure to update risk Applying (evaluation is throttled until 15:04:05Z07)"),
			want: results{"Applying": unknown("Throttled"), "Sparing": unknown("Throttled")},
		},
		"Accepted": {
			reason: "recommended because all risks are accepted does not imply that none applies",
			update: recommended(both, metav1.ConditionTrue, "AllExposedRisksAccepted", "The update is recommended."),
			want:   results{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"NoCondition": {
			reason: "without a condition there is no assessment",
			update: both,
			want:   results{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"Always": {
			reason: "a risk that always applies needs no monitoring",
			update: conditional(target, ruled("Applying", always())),
			want:   results{"Applying": fails},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, clusterVersion(tc.update))
			got := checktest.Results(run(t, server, noMonitoring(t), recommendedUpdate, target))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// failedToEvaluate is CVO's text of a risk that it could not evaluate, and formerly
// that of CVO up to 4.13.
func failedToEvaluate(name string) string {
	return fmt.Sprintf("Could not evaluate exposure to update risk %s (boom)\n  %s description: %s breaks things.\n  %s URL: "+
		"https://example.com/%s", name, name, name, name, name)
}

func formerly(name string) string {
	return fmt.Sprintf("Exposure to %s is unknown due to an evaluation failure: boom\n%s breaks things. https://example.com/%s", name, name,
		name)
}

// An accepted risk is not listed either, so a risk that is not listed may apply.
func TestListWithAcceptedRisks(t *testing.T) {
	version := clusterVersion(recommended(conditional("4.18.16", promql("Applying", applies), promql("Sparing", spares)),
		metav1.ConditionFalse, "MultipleReasons", "Applying breaks things. https://example.com/Applying"))
	version.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "Other"}}}
	got := checktest.Results(run(t, serving(t, version), noMonitoring(t), recommendedUpdate, "4.18.16"))
	if diff := cmp.Diff(results{"Applying": fails, "Sparing": unknown("NoMonitoring")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Definitions of one risk that differ in words have the same result, but since 4.22
// CVO evaluates only one of them.
func TestDivergentDefinitions(t *testing.T) {
	const target = "4.18.16"
	notApplying := recommended(conditional(target, promql("A", spares)), metav1.ConditionTrue, "NotExposedToRisks", "x")
	reworded, other := promql("A", spares), promql("A", applies)
	reworded.Message = "In other words."
	for name, tc := range map[string]struct {
		reason  string
		version string
		second  configv1.ConditionalUpdateRisk
		want    checktest.Result
	}{
		"Words":      {"the rules are the same", "4.18.3", reworded, passes},
		"WordsLast":  {"4.21 evaluates the definition of each update", "4.21.3", reworded, passes},
		"WordsSince": {"4.22 evaluates one definition for all", "4.22.3", reworded, unknown("NoMonitoring")},
		"Rules":      {"another definition has other rules", "4.18.3", other, unknown("NoMonitoring")},
		"Custom":     {"the CVO of a custom release is unknown", "custom", reworded, unknown("NoMonitoring")},
	} {
		t.Run(name, func(t *testing.T) {
			version := clusterVersion(notApplying, conditional("4.18.17", tc.second))
			version.Status.Desired.Version = tc.version
			server.Create(t, version)
			got := checktest.Results(run(t, server, noMonitoring(t), recommendedUpdate, target))
			if diff := cmp.Diff(results{"A": tc.want, recommendedUpdate: warns("DivergentDefinitions")}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A risk that the cluster could not evaluate is evaluated here.
func TestEvaluation(t *testing.T) {
	const target = "4.18.16"
	failed := func(risks ...configv1.ConditionalUpdateRisk) configv1.ConditionalUpdate {
		return recommended(conditional(target, risks...), metav1.ConditionUnknown, "EvaluationFailed", "evaluation is throttled")
	}
	p := measured(t)
	for name, tc := range map[string]struct {
		reason string
		update configv1.ConditionalUpdate
		want   results
	}{
		"Query": {"1 applies and 0 does not", failed(promql("A", applies), promql("B", spares)), results{"A": fails, "B": passes}},
		"Several": {"each risk is evaluated, in any order", recommended(conditional(target, promql("B", applies), promql("A", applies),
			promql("C", spares)), metav1.ConditionFalse, "MultipleReasons", "x"), results{"A": fails, "B": fails, "C": passes}},
		"First": {"the first rule that can be evaluated decides", failed(ruled("A", rule(spares), always())), results{"A": passes}},
		"Fallback": {
			"the rule after one that fails decides",
			failed(ruled("A", rule("none"), always()), ruled("B", rule("none"), rule(spares))),
			results{"A": fails, "B": passes},
		},
		"NoSeries":   {"no series is inconclusive", failed(promql("A", "none")), results{"A": unknown("BadResult")}},
		"Scalar":     {"a scalar is inconclusive", failed(promql("A", "1")), results{"A": unknown("BadResult")}},
		"NaN":        {"NaN is inconclusive", failed(promql("A", "vector(NaN)")), results{"A": unknown("BadResult")}},
		"NoPromQL":   {"a query that is no PromQL is inconclusive", failed(promql("A", "up{")), results{"A": unknown("BadQuery")}},
		"EmptyQuery": {"an empty query is inconclusive", failed(promql("A", "")), results{"A": unknown("BadRule")}},
		"NoQuery": {
			"a rule without a query is inconclusive", failed(ruled("A", configv1.ClusterCondition{Type: "PromQL"})),
			results{"A": unknown("BadRule")},
		},
		"AlwaysQuery": {"a rule of type Always has no query", failed(ruled("A", configv1.ClusterCondition{
			Type:   "Always",
			PromQL: &configv1.PromQLClusterCondition{PromQL: spares},
		})), results{"A": unknown("BadRule")}},
		"NotHosted": {
			"the ID of the cluster is inserted only on HyperShift", failed(promql("A", `hosted{_id=""}`)),
			results{"A": unknown("BadResult")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, clusterVersion(tc.update))
			got := checktest.Results(run(t, server, clientOf(p.URL), recommendedUpdate, target))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHostedClusterIDInQueries(t *testing.T) {
	server.Create(t, openShift(configv1.ExternalTopologyMode), clusterVersion(conditional("4.18.16", promql("A", `hosted{_id=""}`))))
	got := checktest.Results(run(t, server, clientOf(measured(t).URL), recommendedUpdate, "4.18.16"))
	if diff := cmp.Diff(results{"A": fails}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A monitoring that cannot be read makes no check pass.
func TestUnreadMonitoring(t *testing.T) {
	server.Create(t, openShift(configv1.HighlyAvailableTopologyMode), clusterVersion(conditional("4.18.16", promql("A", applies))))
	down := httptest.NewServer(nil)
	down.Close()
	for reason, client := range map[string]*monitoring.Client{
		"Unreachable":  clientOf(down.URL),
		"Unauthorized": clientOf(prometheus.Constant(t, http.StatusUnauthorized, "Unauthorized").URL),
		"Forbidden":    clientOf(prometheus.Constant(t, http.StatusForbidden, "Forbidden").URL),
		"Timeout": clientOf(prometheus.Constant(t, http.StatusServiceUnavailable,
			`{"status":"error","errorType":"timeout","error":"query timed out"}`).URL),
		"PartialAnswer": clientOf(prometheus.Constant(t, http.StatusOK,
			`{"status":"success","data":{"alerts":[]},"warnings":["a store is down"]}`).URL),
		"BadAnswer":    clientOf(prometheus.Constant(t, http.StatusOK, "<html>").URL),
		"NoMonitoring": noMonitoring(t),
	} {
		t.Run(reason, func(t *testing.T) {
			got := checktest.Results(run(t, server, client, recommendedUpdate, "4.18.16"))
			if diff := cmp.Diff(results{"A": unknown(reason)}, got); diff != "" {
				t.Errorf("the risk (-want +got):\n%s", diff)
			}
			got = checktest.Results(run(t, server, client, "Alerts", "4.18.16"))
			if diff := cmp.Diff(results{"Alerts": unknown(reason)}, got); diff != "" {
				t.Errorf("the alerts (-want +got):\n%s", diff)
			}
		})
	}
}

// A defect of the list of updates is reported, and hides no risk.
func TestDefectiveLists(t *testing.T) {
	const target = "4.18.16"
	notApplying := recommended(conditional(target, promql("A", spares)), metav1.ConditionTrue, "NotExposedToRisks", "x")
	available := func(image string, updates ...configv1.ConditionalUpdate) *configv1.ClusterVersion {
		version := clusterVersion(updates...)
		version.Status.AvailableUpdates = []configv1.Release{{Version: target, Image: image}}
		return version
	}
	stale := clusterVersion(notApplying)
	stale.Status.ObservedGeneration = 0
	divergent := promql("A", applies)
	divergent.Message = "Something else breaks."
	p := measured(t)
	for name, tc := range map[string]struct {
		reason  string
		version *configv1.ClusterVersion
		want    results
		message string // a part of all messages
	}{
		"Available": {
			reason:  "an available update has no risks",
			version: available("x"),
			want:    results{recommendedUpdate: {Outcome: preflight.Pass, Reason: "Recommended"}},
		},
		"AvailableToo": {
			reason:  "CVO adds a recommended conditional update to the available updates",
			version: available(notApplying.Release.Image, notApplying),
			want:    results{"A": passes},
		},
		"Contradiction": {
			reason:  "a conditional update that is not recommended has risks, available or not",
			version: available(notApplying.Release.Image, conditional(target, promql("A", applies))),
			want:    results{"A": fails, recommendedUpdate: warns("AvailableAndConditional")},
		},
		"TwoImages": {
			reason:  "one version with two images",
			version: available("another", notApplying),
			want:    results{"A": passes, recommendedUpdate: warns("DifferentImages")},
		},
		"Twice": {
			reason:  "CVO drops a target that is listed twice; here the risks of both entries count",
			version: clusterVersion(notApplying, conditional(target, promql("A", applies), promql("B", spares))),
			want:    results{"A": fails, "B": passes, recommendedUpdate: warns("DivergentDefinitions")},
			message: "4.18.16 2 times",
		},
		"Divergent": {
			reason:  "the cluster evaluated one definition of the risk, and this target may have the other",
			version: clusterVersion(notApplying, conditional("4.18.17", divergent)),
			want:    results{"A": passes, recommendedUpdate: warns("DivergentDefinitions")},
		},
		"NotSemVer": {
			reason:  "CVO crashes on such a version, and it cannot be requested",
			version: clusterVersion(notApplying, conditional("latest", promql("A", spares)), conditional("4.19", promql("A", spares))),
			want:    results{"A": passes, recommendedUpdate: warns("InvalidVersions")},
			message: "4.19, latest",
		},
		"InvalidName": {
			reason: "ClusterVersion cannot accept a risk by such a name, so another is derived",
			version: clusterVersion(conditional(target, promql("no_name", applies), promql("lower", applies),
				promql("A"+strings.Repeat("a", 256), spares))),
			want: results{
				"InvalidRiskName-no-name-7a63ac49": fails, "InvalidRiskName-lower": fails,
				"InvalidRiskName-A" + strings.Repeat("a", 127) + "-aec42544": passes,
			},
			message: `"no_name"`,
		},
		"Stale": {
			reason:  "a risk in a status that is out of date is evaluated again",
			version: stale,
			want:    results{"A": passes, recommendedUpdate: {Outcome: preflight.Skipped, Reason: "StaleStatus"}},
			message: "the finding ClusterVersionRequest blocks the update",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.version)
			findings := run(t, server, clientOf(p.URL), recommendedUpdate, target)
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := checktest.Messages(findings); !strings.Contains(got, tc.message) {
				t.Errorf("%s: want %q in\n%s", tc.reason, tc.message, got)
			}
		})
	}
}

// The risks of a target that the cluster does not know were not evaluated.
func TestUnknownTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		channel   string
		retrieved configv1.ConditionStatus
		want      string
		message   string
	}{
		"NoChannel": {
			"without a channel nothing is recommended", "", configv1.ConditionFalse, "NoChannel",
			"Configured channel is unset, so the recommended status of updating from 4.18.3 to 4.18.99 is unknown.",
		},
		"Retrieved": {
			"a target that the update service does not list is not recommended", "stable-4.18", configv1.ConditionTrue,
			"UnknownUpdate", "RetrievedUpdates=True (R), so the update from 4.18.3 to 4.18.99 is probably neither recommended nor supported.",
		},
		"NotRetrieved": {
			"the updates could not be retrieved", "stable-4.18", configv1.ConditionFalse, "UnknownUpdate",
			"RetrievedUpdates=False (R), so the recommended status of updating from 4.18.3 to 4.18.99 is unknown.",
		},
		"NoCondition": {
			"CVO has not reported yet", "stable-4.18", "", "UnknownUpdate",
			"No RetrievedUpdates, so the recommended status of updating from 4.18.3 to 4.18.99 is unknown.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			version := clusterVersion(conditional("4.18.16", ruled("A", always())))
			version.Spec.Channel = tc.channel
			version.Status.Conditions = nil
			if tc.retrieved != "" {
				version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
					Type: configv1.RetrievedUpdates, Status: tc.retrieved, Reason: "R", LastTransitionTime: metav1.Now(),
				}}
			}
			server.Create(t, version)
			findings := run(t, server, noMonitoring(t), recommendedUpdate, "4.18.99")
			if diff := cmp.Diff(results{recommendedUpdate: unknown(tc.want)}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := findings[0].Message; got != tc.message {
				t.Errorf("%s: got %q, want CVO's %q", tc.reason, got, tc.message)
			}
		})
	}
}

func TestNoClusterVersion(t *testing.T) {
	t.Run("PlainKubernetes", func(t *testing.T) {
		got := checktest.Results(run(t, server, noMonitoring(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(results{recommendedUpdate: {Outcome: preflight.Skipped, Reason: "PlainKubernetes"}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got = checktest.Results(run(t, server, noMonitoring(t), "Alerts", "4.18.16"))
		if diff := cmp.Diff(results{"Alerts": {Outcome: preflight.Skipped, Reason: "PlainKubernetes"}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("OpenShift", func(t *testing.T) {
		server.Create(t, openShift(configv1.HighlyAvailableTopologyMode))
		got := checktest.Results(run(t, server, noMonitoring(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(results{recommendedUpdate: unknown("APIMissing")}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Forbidden", func(t *testing.T) {
		got := checktest.Results(run(t, server.Unprivileged(), noMonitoring(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(results{recommendedUpdate: unknown("Forbidden")}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Same", func(t *testing.T) {
		got := checktest.Results(run(t, server, noMonitoring(t), recommendedUpdate, from))
		if diff := cmp.Diff(results{recommendedUpdate: {Outcome: preflight.Skipped, Reason: "NotConcerned"}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// The CRDs of another release may allow what those of these tests reject.
func TestRejectedByTheCRDs(t *testing.T) {
	const target = "4.18.16"
	p := measured(t)
	unruled := ruled("A")
	named := conditional(target)
	named.RiskNames = []string{"Undefined"}
	for name, tc := range map[string]struct {
		reason string
		update configv1.ConditionalUpdate
		want   results
	}{
		"NoRules": {"a risk without rules is inconclusive", conditional(target, unruled), results{"A": unknown("NoMatchingRules")}},
		"UnknownType": {
			"a rule of an unknown type is inconclusive", conditional(target, ruled("A", configv1.ClusterCondition{Type: "CEL"})),
			results{"A": unknown("UnknownRuleType")},
		},
		"UnknownFirst": {
			"the rule after one of an unknown type decides",
			conditional(target, ruled("A", configv1.ClusterCondition{Type: "CEL"}, rule(spares))),
			results{"A": passes},
		},
		"NoRisks": {
			"a conditional update without risks is inconclusive", conditional(target),
			results{recommendedUpdate: unknown("NoRisks")},
		},
		"Undefined": {"a risk without a definition is inconclusive", named, results{"Undefined": unknown("NoMatchingRules")}},
		"Nameless":  {"a risk without a name", conditional(target, ruled("", always())), results{"InvalidRiskName": fails}},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Results(run(t, serving(t, clusterVersion(tc.update)), clientOf(p.URL), recommendedUpdate, target))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// serving is an API server with one ClusterVersion, which is not validated, and
// nothing else.
func serving(t *testing.T, version *configv1.ClusterVersion) checktest.Server {
	t.Helper()
	version.TypeMeta = metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion"}
	data, err := json.Marshal(version)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		if !strings.HasSuffix(r.URL.Path, "/clusterversions/version") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(front.Close)
	return checktest.Connect(&rest.Config{Host: front.URL})
}
