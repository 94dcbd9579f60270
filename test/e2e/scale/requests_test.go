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

// others is what the administrator asks by any other verb.
const others = "others"

// verbs are all that API servers know of resources (k8s.io/apiserver
// pkg/endpoints/request, RequestInfoFactory), and others, which is to stay 0.
func verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", others}
}

// countRequests has the API server itself count what the administrator asks, by
// verb: each verb is a flow of its own, at the priority that administrators have
// anyway.
func (p *place) countRequests() {
	p.tb.Helper()
	flows := p.client.FlowcontrolV1().FlowSchemas()
	for i, verb := range verbs() {
		asked := verb
		if verb == others {
			asked = flowcontrolv1.VerbAll
		}
		_, err := flows.Create(p.tb.Context(), &flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: admin + "-" + verb},
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "global-default"},
				MatchingPrecedence:         int32(2 + i),
				DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: admin}}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: []string{asked}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
					}},
					NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{asked}, NonResourceURLs: []string{"*"}}},
				}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			p.tb.Fatal(err)
		}
	}
	for _, verb := range verbs() {
		p.awaitFlow(admin + "-" + verb)
	}
}

// awaitFlow returns when the API server goes by the flow schema.
func (p *place) awaitFlow(name string) {
	p.tb.Helper()
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	flows := p.client.FlowcontrolV1().FlowSchemas()
	_, err := watchtools.UntilWithSync(p.tb.Context(), &cache.ListWatch{
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
		p.tb.Fatal(err)
	}
}

// counts are what an API server has counted since it started.
type counts struct {
	// asked counts the requests of the administrator, by verb, with those that
	// the API server had no time for.
	asked map[string]float64
	// served counts those of all clients: "POST pods/binding".
	served map[string]float64
}

// counts reads them.
func (p *place) counts() counts {
	p.tb.Helper()
	text, err := p.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(p.tb.Context())
	if err != nil {
		p.tb.Fatal(err)
	}
	m := counts{asked: map[string]float64{}, served: map[string]float64{}}
	label := func(labels, name string) string {
		found := regexp.MustCompile(`\b` + name + `="([^"]*)"`).FindStringSubmatch(labels)
		if found == nil {
			return ""
		}
		return found[1]
	}
	line := regexp.MustCompile(`(?m)^(apiserver_flowcontrol_dispatched_requests_total|apiserver_flowcontrol_rejected_requests_total|apiserver_request_total)\{(.*)\} (\S+)$`)
	for _, match := range line.FindAllStringSubmatch(string(text), -1) {
		value, err := strconv.ParseFloat(match[3], 64)
		if err != nil {
			p.tb.Fatal(err)
		}
		if match[1] == "apiserver_request_total" {
			m.served[strings.TrimSuffix(label(match[2], "verb")+" "+label(match[2], "resource")+"/"+label(match[2], "subresource"), "/")] += value
			continue
		}
		if verb, ok := strings.CutPrefix(label(match[2], "flow_schema"), admin+"-"); ok {
			m.asked[verb] += value
		}
	}
	return m
}

// since is what was counted between earlier and m.
func (m counts) since(earlier counts) counts {
	return counts{asked: less(m.asked, earlier.asked), served: less(m.served, earlier.served)}
}

func less(now, then map[string]float64) map[string]float64 {
	left := map[string]float64{}
	for key, value := range now {
		if value > then[key] {
			left[key] = value - then[key]
		}
	}
	return left
}

// total is how many requests the administrator made.
func (m counts) total() float64 {
	sum := 0.0
	for _, value := range m.asked {
		sum += value
	}
	return sum
}

// byVerb says how many there were for each of n Jobs, the most first.
func (m counts) byVerb(n int) string {
	order := slices.SortedFunc(maps.Keys(m.asked), func(a, b string) int { return int(m.asked[b] - m.asked[a]) })
	var words []string
	for _, verb := range order {
		words = append(words, fmt.Sprintf("%s %.3f", verb, m.asked[verb]/float64(n)))
	}
	return strings.Join(words, ", ")
}

// everybodys are the most frequent requests of the whole cluster, for each of n
// Jobs.
func (m counts) everybodys(n int) string {
	order := slices.SortedFunc(maps.Keys(m.served), func(a, b string) int { return int(m.served[b] - m.served[a]) })
	var words []string
	for _, what := range order[:min(14, len(order))] {
		words = append(words, fmt.Sprintf("%s %.2f", what, m.served[what]/float64(n)))
	}
	return strings.Join(words, ", ")
}

// add counts the later requests with m's.
func (m counts) add(later counts) {
	for verb, value := range later.asked {
		m.asked[verb] += value
	}
	for what, value := range later.served {
		m.served[what] += value
	}
}
