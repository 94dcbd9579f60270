package scale_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// others is the name of all requests with another verb.
const others = "others"

// verbs returns the verbs of resource requests (k8s.io/apiserver
// pkg/endpoints/request, RequestInfoFactory), and others, which must remain 0.
func verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", others}
}

// countRequests makes the API server count the administrator's requests by verb: each
// verb has a FlowSchema, with the default priority level of users.
func (e *environment) countRequests() {
	e.tb.Helper()
	flows := e.client.FlowcontrolV1().FlowSchemas()
	for i, verb := range verbs() {
		matched := verb
		if verb == others {
			matched = flowcontrolv1.VerbAll
		}
		_, err := flows.Create(e.tb.Context(), &flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: admin + "-" + verb},
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "global-default"},
				MatchingPrecedence:         int32(2 + i),
				DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: admin}}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: []string{matched}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
					}},
					NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{matched}, NonResourceURLs: []string{"*"}}},
				}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			e.tb.Fatal(err)
		}
	}
	for _, verb := range verbs() {
		e.awaitFlow(admin + "-" + verb)
	}
}

// awaitFlow returns when the API server uses the FlowSchema.
func (e *environment) awaitFlow(name string) {
	e.tb.Helper()
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	flows := e.client.FlowcontrolV1().FlowSchemas()
	_, err := watchtools.UntilWithSync(e.tb.Context(), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return flows.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return flows.Watch(ctx, options)
		},
	}, &flowcontrolv1.FlowSchema{}, nil, func(event watch.Event) (bool, error) {
		flow, ok := event.Object.(*flowcontrolv1.FlowSchema)
		return ok && slices.ContainsFunc(flow.Status.Conditions, func(condition flowcontrolv1.FlowSchemaCondition) bool {
			return condition.Type == flowcontrolv1.FlowSchemaConditionDangling && condition.Status == flowcontrolv1.ConditionFalse
		}), nil
	})
	if err != nil {
		e.tb.Fatal(err)
	}
}

// counts are the request counters of an API server.
type counts struct {
	// byUser counts the administrator's requests by verb, including rejected ones.
	byUser map[string]float64
	// served counts the requests of all clients by method and resource, as in
	// "POST pods/binding".
	served map[string]float64
}

// counts reads the counters.
func (e *environment) counts() counts {
	e.tb.Helper()
	text, err := e.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(e.tb.Context())
	if err != nil {
		e.tb.Fatal(err)
	}
	m := counts{byUser: map[string]float64{}, served: map[string]float64{}}
	label := func(labels, name string) string {
		found := regexp.MustCompile(`\b` + name + `="([^"]*)"`).FindStringSubmatch(labels)
		if found == nil {
			return ""
		}
		return found[1]
	}
	line := regexp.MustCompile(
		`(?m)^(apiserver_flowcontrol_dispatched_requests_total|apiserver_flowcontrol_rejected_requests_total|apiserver_request_total)\{(.*)\} (\S+)$`)
	for _, match := range line.FindAllStringSubmatch(string(text), -1) {
		value, err := strconv.ParseFloat(match[3], 64)
		if err != nil {
			e.tb.Fatal(err)
		}
		if match[1] == "apiserver_request_total" {
			m.served[strings.TrimSuffix(label(match[2], "verb")+" "+label(match[2], "resource")+"/"+label(match[2], "subresource"), "/")] += value
			continue
		}
		if verb, ok := strings.CutPrefix(label(match[2], "flow_schema"), admin+"-"); ok {
			m.byUser[verb] += value
		}
	}
	return m
}

// since returns the requests between earlier and m.
func (m counts) since(earlier counts) counts {
	return counts{byUser: subtract(m.byUser, earlier.byUser), served: subtract(m.served, earlier.served)}
}

func subtract(now, then map[string]float64) map[string]float64 {
	left := map[string]float64{}
	for key, value := range now {
		if value > then[key] {
			left[key] = value - then[key]
		}
	}
	return left
}

// total returns the number of the administrator's requests.
func (m counts) total() float64 {
	sum := 0.0
	for _, value := range m.byUser {
		sum += value
	}
	return sum
}

// byVerb describes the administrator's requests per Job of n, most frequent first.
func (m counts) byVerb(n int) string {
	order := slices.SortedFunc(maps.Keys(m.byUser), func(a, b string) int { return int(m.byUser[b] - m.byUser[a]) })
	var words []string
	for _, verb := range order {
		words = append(words, fmt.Sprintf("%s %.3f", verb, m.byUser[verb]/float64(n)))
	}
	return strings.Join(words, ", ")
}

// topRequests describes the most frequent requests of all clients per Job of n.
func (m counts) topRequests(n int) string {
	order := slices.SortedFunc(maps.Keys(m.served), func(a, b string) int { return int(m.served[b] - m.served[a]) })
	var words []string
	for _, request := range order[:min(14, len(order))] {
		words = append(words, fmt.Sprintf("%s %.2f", request, m.served[request]/float64(n)))
	}
	return strings.Join(words, ", ")
}

// add adds the counters of later to those of m.
func (m counts) add(later counts) {
	for verb, value := range later.byUser {
		m.byUser[verb] += value
	}
	for request, value := range later.served {
		m.served[request] += value
	}
}
