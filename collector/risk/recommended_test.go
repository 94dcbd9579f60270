package risk_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/prometheus"
)

type said = map[string]checktest.Result

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

// What the cluster found counts where it is one answer, on the default feature
// set, which has one condition for all risks of an update.
func TestWhatTheClusterFound(t *testing.T) {
	const target = "4.18.16"
	both := conditional(target, promql("Applying", applies), promql("Sparing", spares))
	for name, tc := range map[string]struct {
		reason string
		update configv1.ConditionalUpdate
		want   said // without monitoring: only what the cluster found counts
	}{
		"Recommended": {
			reason: "a recommended update has no risk that applies",
			update: recommended(both, metav1.ConditionTrue, "NotExposedToRisks", "The update is recommended."),
			want:   said{"Applying": passes, "Sparing": passes},
		},
		"OneNamed": {
			reason: "the reason is the name of the only risk that applies",
			update: recommended(both, metav1.ConditionFalse, "Applying", "Applying breaks things. https://example.com/Applying"),
			want:   said{"Applying": fails, "Sparing": passes},
		},
		"Several": {
			reason: "MultipleReasons names none, but the message has the text of those that apply",
			update: recommended(both, metav1.ConditionFalse, "MultipleReasons",
				"Applying breaks things. https://example.com/Applying\n\nCould not evaluate exposure to update risk Sparing (boom)"),
			want: said{"Applying": fails, "Sparing": unknown("NoMonitoring")},
		},
		"Exposed": {
			reason: "a reason of CVO's own names none",
			update: recommended(both, metav1.ConditionFalse, "ExposedToRisks", "Something."),
			want:   said{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"Failed": {
			reason: "what the cluster could not tell nobody can without monitoring",
			update: recommended(both, metav1.ConditionUnknown, "EvaluationFailed", "Could not evaluate exposure to update risk Applying (boom)"),
			want:   said{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"Throttled": {
			reason: "the cause is that CVO takes its time",
			update: recommended(both, metav1.ConditionUnknown, "EvaluationFailed",
				"Could not evaluate exposure to update risk Applying (evaluation is throttled until 15:04:05Z07)"),
			want: said{"Applying": unknown("Throttled"), "Sparing": unknown("Throttled")},
		},
		"Accepted": {
			reason: "recommended because all was accepted says of no risk that it does not apply",
			update: recommended(both, metav1.ConditionTrue, "AllExposedRisksAccepted", "The update is recommended."),
			want:   said{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"Nothing": {
			reason: "no condition is no answer",
			update: both,
			want:   said{"Applying": unknown("NoMonitoring"), "Sparing": unknown("NoMonitoring")},
		},
		"Always": {
			reason: "what always applies needs no monitoring",
			update: conditional(target, ruled("Applying", always())),
			want:   said{"Applying": fails},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, clusterVersion(tc.update))
			got := checktest.Results(ask(t, server, nothing(t), recommendedUpdate, target))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Whatever the cluster could not tell is evaluated here.
func TestWhatIsEvaluatedHere(t *testing.T) {
	const target = "4.18.16"
	failed := func(risks ...configv1.ConditionalUpdateRisk) configv1.ConditionalUpdate {
		return recommended(conditional(target, risks...), metav1.ConditionUnknown, "EvaluationFailed", "evaluation is throttled")
	}
	p := measured(t)
	for name, tc := range map[string]struct {
		reason string
		update configv1.ConditionalUpdate
		want   said
	}{
		"Query":       {"1 applies and 0 does not", failed(promql("A", applies), promql("B", spares)), said{"A": fails, "B": passes}},
		"Several":     {"each risk has its own answer, whatever their order", recommended(conditional(target, promql("B", applies), promql("A", applies), promql("C", spares)), metav1.ConditionFalse, "MultipleReasons", "x"), said{"A": fails, "B": fails, "C": passes}},
		"First":       {"the first rule that can be evaluated decides", failed(ruled("A", rule(spares), always())), said{"A": passes}},
		"Fallback":    {"a rule that fails leaves it to the next", failed(ruled("A", rule("none"), always()), ruled("B", rule("none"), rule(spares))), said{"A": fails, "B": passes}},
		"NoSeries":    {"no series is no answer", failed(promql("A", "none")), said{"A": unknown("BadResult")}},
		"Scalar":      {"nor is a scalar", failed(promql("A", "1")), said{"A": unknown("BadResult")}},
		"NaN":         {"nor is NaN", failed(promql("A", "vector(NaN)")), said{"A": unknown("BadResult")}},
		"NoPromQL":    {"nor is what is no PromQL", failed(promql("A", "up{")), said{"A": unknown("BadQuery")}},
		"EmptyQuery":  {"nor is nothing", failed(promql("A", "")), said{"A": unknown("BadRule")}},
		"NoQuery":     {"nor is a rule without a query", failed(ruled("A", configv1.ClusterCondition{Type: "PromQL"})), said{"A": unknown("BadRule")}},
		"AlwaysQuery": {"a query has no place in Always", failed(ruled("A", configv1.ClusterCondition{Type: "Always", PromQL: &configv1.PromQLClusterCondition{PromQL: spares}})), said{"A": unknown("BadRule")}},
		"NotHosted":   {"only on HyperShift is the cluster named in queries", failed(promql("A", `hosted{_id=""}`)), said{"A": unknown("BadResult")}},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, clusterVersion(tc.update))
			got := checktest.Results(ask(t, server, asking(p.URL), recommendedUpdate, target))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHostedClusterIsNamedInQueries(t *testing.T) {
	server.Create(t, openShift(configv1.ExternalTopologyMode), clusterVersion(conditional("4.18.16", promql("A", `hosted{_id=""}`))))
	got := checktest.Results(ask(t, server, asking(measured(t).URL), recommendedUpdate, "4.18.16"))
	if diff := cmp.Diff(said{"A": fails}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A monitoring that does not answer makes nothing a pass.
func TestMonitoringThatDoesNotAnswer(t *testing.T) {
	server.Create(t, openShift(configv1.HighlyAvailableTopologyMode), clusterVersion(conditional("4.18.16", promql("A", applies))))
	down := prometheus.Run(t)
	down.Stop()
	for reason, client := range map[string]*monitoring.Client{
		"Unreachable":   asking(down.URL),
		"Unauthorized":  asking(prometheus.Saying(t, http.StatusUnauthorized, "Unauthorized").URL),
		"Forbidden":     asking(prometheus.Saying(t, http.StatusForbidden, "Forbidden").URL),
		"Timeout":       asking(prometheus.Saying(t, http.StatusServiceUnavailable, `{"status":"error","errorType":"timeout","error":"query timed out"}`).URL),
		"PartialAnswer": asking(prometheus.Saying(t, http.StatusOK, `{"status":"success","data":{"alerts":[]},"warnings":["a store is down"]}`).URL),
		"BadAnswer":     asking(prometheus.Saying(t, http.StatusOK, "<html>").URL),
		"NoMonitoring":  nothing(t),
	} {
		t.Run(reason, func(t *testing.T) {
			got := checktest.Results(ask(t, server, client, recommendedUpdate, "4.18.16"))
			if diff := cmp.Diff(said{"A": unknown(reason)}, got); diff != "" {
				t.Errorf("the risk (-want +got):\n%s", diff)
			}
			got = checktest.Results(ask(t, server, client, "Alerts", "4.18.16"))
			if diff := cmp.Diff(said{"Alerts": unknown(reason)}, got); diff != "" {
				t.Errorf("the alerts (-want +got):\n%s", diff)
			}
		})
	}
}

// What is wrong with the list of updates is told of, and hides no risk.
func TestOddLists(t *testing.T) {
	const target = "4.18.16"
	spared := recommended(conditional(target, promql("A", spares)), metav1.ConditionTrue, "NotExposedToRisks", "x")
	available := func(image string, updates ...configv1.ConditionalUpdate) *configv1.ClusterVersion {
		version := clusterVersion(updates...)
		version.Status.AvailableUpdates = []configv1.Release{{Version: target, Image: image}}
		return version
	}
	stale := clusterVersion(spared)
	stale.Status.ObservedGeneration = 0
	divergent := promql("A", applies)
	divergent.Message = "Something else breaks."
	p := measured(t)
	for name, tc := range map[string]struct {
		reason  string
		version *configv1.ClusterVersion
		want    said
		says    string
	}{
		"Available": {
			reason:  "what is available has no risks",
			version: available("x"),
			want:    said{recommendedUpdate: {Outcome: preflight.Pass, Reason: "Recommended"}},
		},
		"AvailableToo": {
			reason:  "CVO adds a conditional update that it recommends to those that are available",
			version: available(spared.Release.Image, spared),
			want:    said{"A": passes},
		},
		"Contradiction": {
			reason:  "one that it does not recommend has risks, available or not",
			version: available(spared.Release.Image, conditional(target, promql("A", applies))),
			want:    said{"A": fails, recommendedUpdate: warns("AvailableAndConditional")},
		},
		"TwoImages": {
			reason:  "one version that means two releases",
			version: available("another", spared),
			want:    said{"A": passes, recommendedUpdate: warns("DifferentImages")},
		},
		"Twice": {
			reason:  "CVO drops a target that is listed twice; here the risks of both entries count",
			version: clusterVersion(spared, conditional(target, promql("A", applies), promql("B", spares))),
			want:    said{"A": fails, "B": passes, recommendedUpdate: warns("DivergentDefinitions")},
			says:    "4.18.16 2 times",
		},
		"Divergent": {
			reason:  "the cluster evaluated one definition of the risk, and this target may have the other",
			version: clusterVersion(spared, conditional("4.18.17", divergent)),
			want:    said{"A": passes, recommendedUpdate: warns("DivergentDefinitions")},
		},
		"NotSemVer": {
			reason:  "CVO crashes on such a version; nobody can ask for it",
			version: clusterVersion(spared, conditional("latest", promql("A", spares)), conditional("4.19", promql("A", spares))),
			want:    said{"A": passes, recommendedUpdate: warns("InvalidVersions")},
			says:    "4.19, latest",
		},
		"InvalidName": {
			reason:  "ClusterVersion cannot accept a risk by such a name, so it gets another",
			version: clusterVersion(conditional(target, promql("no_name", applies), promql("lower", applies), promql("A"+strings.Repeat("a", 256), spares))),
			want: said{
				"InvalidRiskName-no-name-7a63ac49": fails, "InvalidRiskName-lower": fails,
				"InvalidRiskName-A" + strings.Repeat("a", 127) + "-aec42544": passes,
			},
			says: `"no_name"`,
		},
		"Stale": {
			reason:  "a status of an earlier spec is evaluated again, and its list may be another",
			version: stale,
			want:    said{"A": passes, recommendedUpdate: unknown("StaleStatus")},
			says:    "generation 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.version)
			findings := ask(t, server, asking(p.URL), recommendedUpdate, target)
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(messages(findings), tc.says) {
				t.Errorf("%s: want %q in\n%s", tc.reason, tc.says, messages(findings))
			}
		})
	}
}

func messages(findings []finding.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Message)
	}
	return strings.Join(all, "\n")
}

// Nobody evaluated risks of a target that the cluster does not know.
func TestTargetThatTheClusterDoesNotKnow(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		channel   string
		retrieved configv1.ConditionStatus
		want      string
		says      string
	}{
		"NoChannel":    {"without a channel nothing is recommended", "", configv1.ConditionFalse, "NoChannel", "Configured channel is unset, so the recommended status of updating from 4.18.3 to 4.18.99 is unknown."},
		"Retrieved":    {"what the update service leaves out it does not recommend", "stable-4.18", configv1.ConditionTrue, "UnknownUpdate", "RetrievedUpdates=True (R), so the update from 4.18.3 to 4.18.99 is probably neither recommended nor supported."},
		"NotRetrieved": {"nobody asked the update service", "stable-4.18", configv1.ConditionFalse, "UnknownUpdate", "RetrievedUpdates=False (R), so the recommended status of updating from 4.18.3 to 4.18.99 is unknown."},
		"NoCondition":  {"nor does anybody say so", "stable-4.18", "", "UnknownUpdate", "No RetrievedUpdates, so the recommended status of updating from 4.18.3 to 4.18.99 is unknown."},
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
			findings := ask(t, server, nothing(t), recommendedUpdate, "4.18.99")
			if diff := cmp.Diff(said{recommendedUpdate: unknown(tc.want)}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := messages(findings); got != tc.says {
				t.Errorf("%s: got %q, want CVO's %q", tc.reason, got, tc.says)
			}
		})
	}
}

func TestNoClusterVersion(t *testing.T) {
	t.Run("PlainKubernetes", func(t *testing.T) {
		got := checktest.Results(ask(t, server, nothing(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(said{recommendedUpdate: {Outcome: preflight.Skipped, Reason: "PlainKubernetes"}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got = checktest.Results(ask(t, server, nothing(t), "Alerts", "4.18.16"))
		if diff := cmp.Diff(said{"Alerts": {Outcome: preflight.Skipped, Reason: "PlainKubernetes"}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("OpenShift", func(t *testing.T) {
		server.Create(t, openShift(configv1.HighlyAvailableTopologyMode))
		got := checktest.Results(ask(t, server, nothing(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(said{recommendedUpdate: unknown("APIMissing")}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Forbidden", func(t *testing.T) {
		got := checktest.Results(ask(t, server.Unprivileged(), nothing(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(said{recommendedUpdate: unknown("Forbidden")}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Same", func(t *testing.T) {
		got := checktest.Results(ask(t, server, nothing(t), recommendedUpdate, from))
		if diff := cmp.Diff(said{recommendedUpdate: {Outcome: preflight.Skipped, Reason: "NotConcerned"}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// What today's CRDs do not let in may come from those of another release.
func TestWhatTheCRDsDoNotLetIn(t *testing.T) {
	const target = "4.18.16"
	p := measured(t)
	unruled := ruled("A")
	named := conditional(target)
	named.RiskNames = []string{"Undefined"}
	for name, tc := range map[string]struct {
		reason string
		update configv1.ConditionalUpdate
		want   said
	}{
		"NoRules":      {"a risk without rules may apply", conditional(target, unruled), said{"A": unknown("NoMatchingRules")}},
		"UnknownType":  {"a rule of a type to come does not say no", conditional(target, ruled("A", configv1.ClusterCondition{Type: "CEL"})), said{"A": unknown("UnknownRuleType")}},
		"UnknownFirst": {"it leaves it to a rule that is known", conditional(target, ruled("A", configv1.ClusterCondition{Type: "CEL"}, rule(spares))), said{"A": passes}},
		"NoRisks":      {"a condition that nobody knows", conditional(target), said{recommendedUpdate: unknown("NoRisks")}},
		"Undefined":    {"a risk that is only named", named, said{"Undefined": unknown("NoMatchingRules")}},
		"Nameless":     {"a risk without a name", conditional(target, ruled("", always())), said{"InvalidRiskName": fails}},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Results(ask(t, serving(t, clusterVersion(tc.update)), asking(p.URL), recommendedUpdate, target))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// serving is an API server that has one ClusterVersion, unchecked, and nothing
// else.
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
