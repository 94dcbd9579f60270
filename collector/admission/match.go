package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/openshift/update-preflight/collector/ownsignal"
)

// Match is whether the API server submits a request to a webhook or a policy.
type Match int

// The matches.
const (
	// Excluded is a request that is not submitted.
	Excluded Match = iota
	// Uncertain is a request whose match depends on unknown facts.
	Uncertain
	// Matched is a request that is submitted.
	Matched
)

// Hook is the set of requests that a webhook, a policy or a binding matches.
type Hook struct {
	resources  admissionregistrationv1.MatchResources
	conditions []admissionregistrationv1.MatchCondition

	namespaces, objects labels.Selector
	// open is true if a condition depends on what is not known.
	open     bool
	compiled matchconditions.Matcher
}

// Webhook is the hook of a webhook, validating or mutating. An error names an invalid selector.
func Webhook(w admissionregistrationv1.ValidatingWebhook) (*Hook, error) {
	resources := admissionregistrationv1.MatchResources{
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		MatchPolicy: w.MatchPolicy,
	}
	for _, rule := range w.Rules {
		resources.ResourceRules = append(resources.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	if len(w.Rules) == 0 { // which matches everything in a policy, and nothing in a webhook
		resources.ExcludeResourceRules = everything()
	}
	return newHook(resources, w.MatchConditions)
}

func everything() []admissionregistrationv1.NamedRuleWithOperations {
	all := []string{"*"}
	rule := admissionregistrationv1.Rule{APIGroups: all, APIVersions: all, Resources: []string{"*/*"}}
	return []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}, Rule: rule,
	}}}
}

// Mutating is a mutating webhook as a validating one: they match in the same way.
func Mutating(w *admissionregistrationv1.MutatingWebhook) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, TimeoutSeconds: w.TimeoutSeconds,
		MatchConditions: w.MatchConditions,
	}
}

// Resources is the hook of a policy or of a binding with these resources and match
// conditions. Nil resources match every request. An error names an invalid
// selector.
func Resources(resources *admissionregistrationv1.MatchResources, conditions []admissionregistrationv1.MatchCondition) (*Hook, error) {
	if resources == nil {
		resources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}}
	}
	return newHook(*resources, conditions)
}

func newHook(resources admissionregistrationv1.MatchResources, conditions []admissionregistrationv1.MatchCondition) (*Hook, error) {
	namespaces, namespaceErr := selectorOf(resources.NamespaceSelector)
	objects, objectErr := selectorOf(resources.ObjectSelector)
	hook := &Hook{resources: resources, namespaces: namespaces, objects: objects}
	for _, condition := range conditions {
		if foreseeable(condition.Expression) {
			hook.conditions = append(hook.conditions, condition)
		}
	}
	hook.open = len(hook.conditions) < len(conditions)
	return hook, errors.Join(namespaceErr, objectErr)
}

// selectorOf is a selector with the default of the API, which the API server sets and a manifest may lack: everything
// (k8s.io/api admissionregistration/v1, "Default to the empty LabelSelector").
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// GetParsedNamespaceSelector implements matching.MatchCriteria.
func (h *Hook) GetParsedNamespaceSelector() (labels.Selector, error) { return h.namespaces, nil }

// GetParsedObjectSelector implements matching.MatchCriteria.
func (h *Hook) GetParsedObjectSelector() (labels.Selector, error) { return h.objects, nil }

// GetMatchResources implements matching.MatchCriteria.
func (h *Hook) GetMatchResources() admissionregistrationv1.MatchResources { return h.resources }

// known are the parts of an object that a [Request] has, and unknown are identifiers
// for which it has no value, or not all of it.
var (
	known   = regexp.MustCompile(`\b(object|oldObject)\.metadata\.(name|namespace|labels)\b`)
	unknown = regexp.MustCompile(`\b(object|oldObject|params|authorizer|namespaceObject|variables|uid|extra|options)\b`)
	// ofRun are the conditions of the guard of a preflight, which no controller of an update meets.
	ofRun = regexp.MustCompile(strings.ReplaceAll(
		regexp.QuoteMeta(ownsignal.Requester("SUFFIX"))+"|"+regexp.QuoteMeta(ownsignal.Subject("SUFFIX")), "SUFFIX", "[0-9a-f]{10}"))
)

// foreseeable reports whether an expression depends only on what a [Request] has: its
// attributes, and the name and labels of its object, and on whether it comes from a pod of a preflight. An identifier in a string counts
// too, so that the result may be false for an expression that does.
func foreseeable(expression string) bool {
	return !unknown.MatchString(known.ReplaceAllString(ofRun.ReplaceAllString(expression, ""), ""))
}

// Matcher matches requests. It may not be used concurrently.
type Matcher struct {
	library    *matching.Matcher
	interfaces apiadmission.ObjectInterfaces
	compiler   func() cel.ConditionCompiler
}

// NewMatcher makes a matcher for a cluster with these namespaces. Of namespaces only the labels are used.
func NewMatcher(namespaces []metav1.PartialObjectMetadata) *Matcher {
	lister := make(lister, len(namespaces))
	for i := range namespaces {
		lister[namespaces[i].Name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaces[i].Name, Labels: namespaces[i].Labels}}
	}
	return &Matcher{
		library: matching.NewMatcher(lister, nil), // its client reads what the lister does not find
		// The resources of all requests have one version each in every supported release,
		// so that none has an equivalent.
		interfaces: apiadmission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
		compiler: sync.OnceValue(func() cel.ConditionCompiler {
			return cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		}),
	}
}

type lister map[string]*corev1.Namespace

func (l lister) List(selector labels.Selector) ([]*corev1.Namespace, error) {
	var found []*corev1.Namespace
	for _, namespace := range l {
		if selector.Matches(labels.Set(namespace.Labels)) {
			found = append(found, namespace)
		}
	}
	return found, nil
}

// Get implements NamespaceLister. Its error is not NotFound, since the library would then ask the API server.
func (l lister) Get(name string) (*corev1.Namespace, error) {
	if namespace, ok := l[name]; ok {
		return namespace, nil
	}
	return nil, fmt.Errorf("unknown namespace %q", name)
}

// Concerns reports whether the rules of the hook match the requests of a group.
func (m *Matcher) Concerns(hook *Hook, group Group) bool {
	if len(group) == 0 {
		return false
	}
	matches := func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
		matcher := rules.Matcher{Rule: rule.RuleWithOperations, Attr: group[0].attributes}
		return matcher.Matches()
	}
	return len(hook.resources.ResourceRules) == 0 || slices.ContainsFunc(hook.resources.ResourceRules, matches)
}

// Match matches a request as the API server does.
func (m *Matcher) Match(ctx context.Context, hook *Hook, request Request) Match {
	criteria, unlabeled := *hook, !request.complete && !hook.objects.Empty()
	if unlabeled {
		criteria.objects = labels.Everything()
	}
	matches, _, _, err := m.library.Matches(request.attributes, m.interfaces, &criteria)
	switch {
	case err == nil && !matches:
		return Excluded
	case err != nil || unlabeled:
		return Uncertain
	case len(hook.conditions) == 0 && !hook.open:
		return Matched
	}
	return m.evaluate(ctx, hook, request)
}

// First returns the first request of the groups that is matched, and the first that is
// uncertain if none is. Groups that the hook does not concern are not evaluated.
func (m *Matcher) First(ctx context.Context, hook *Hook, groups []Group) (Request, Match) {
	var found Request
	result := Excluded
	for _, group := range groups {
		if !m.Concerns(hook, group) {
			continue
		}
		for _, request := range group {
			if ctx.Err() != nil {
				return found, result
			}
			match := m.Match(ctx, hook, request)
			if match > result {
				found, result = request, match
			}
			if match == Matched {
				return found, result
			}
		}
	}
	return found, result
}

// Namespaces in which a request of the groups is matched, sorted.
func (m *Matcher) Namespaces(ctx context.Context, hook *Hook, groups []Group) []string {
	found := map[string]bool{}
	for _, group := range groups {
		if !m.Concerns(hook, group) {
			continue
		}
		for _, request := range group {
			namespace := request.attributes.GetNamespace()
			if ctx.Err() == nil && namespace != "" && !found[namespace] {
				found[namespace] = m.Match(ctx, hook, request) == Matched
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, matched bool) bool { return !matched })
	return slices.Sorted(maps.Keys(found))
}

// evaluate evaluates the match conditions, at the costs that the API server allows.
func (m *Matcher) evaluate(ctx context.Context, hook *Hook, request Request) Match {
	if request.userUnknown && slices.ContainsFunc(hook.conditions, onUser) {
		return Uncertain
	}
	if hook.compiled == nil {
		hook.compiled = m.compile(hook.conditions)
	}
	versioned, err := apiadmission.NewVersionedAttributes(request.attributes, request.attributes.GetKind(), m.interfaces)
	if err != nil {
		return Uncertain
	}
	result := hook.compiled.Match(ctx, versioned, nil, nil)
	switch {
	case result.Error != nil:
		return Uncertain
	case !result.Matches && request.complete:
		return Excluded
	case hook.open || !request.complete:
		return Uncertain
	}
	return Matched
}

func onUser(condition admissionregistrationv1.MatchCondition) bool {
	return strings.Contains(condition.Expression, "userInfo")
}

func (m *Matcher) compile(conditions []admissionregistrationv1.MatchCondition) matchconditions.Matcher {
	accessors := make([]cel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		accessors[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	fail := admissionregistrationv1.Fail
	declarations := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	evaluator := m.compiler().CompileCondition(accessors, declarations, environment.StoredExpressions)
	return matchconditions.NewMatcher(evaluator, &fail, "webhook", "validating", "")
}

// Validations returns the validations of a policy that depend only on the fields of a [Request], as a hook: it
// matches a request for which all of them hold. It is nil without such validations.
func Validations(policy *admissionregistrationv1.ValidatingAdmissionPolicy) *Hook {
	hook := &Hook{namespaces: labels.Everything(), objects: labels.Everything()}
	for i, validation := range policy.Spec.Validations {
		if foreseeable(validation.Expression) {
			hook.conditions = append(hook.conditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprint(i), Expression: validation.Expression})
		}
	}
	if len(hook.conditions) == 0 {
		return nil
	}
	return hook
}
