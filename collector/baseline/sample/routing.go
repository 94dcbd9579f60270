package sample

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = finding.Explain("An IngressController, a Route or an egress rule has a problem after the update that it did not have before.", `
CanaryChecksFailing | The requests that the ingress operator sends through its routers to test them fail. | Check the routers, the load balancer before them and the
	DNS records. | oc describe ingresscontroller NAME -n openshift-ingress-operator
NotAdmitted | A router that had admitted it does not any more: the new release validates Routes more strictly, or another Route has its host. | Read the
	conditions of its status. | oc describe route NAME -n NAMESPACE
NotApplied | The network plugin could not apply its rules, so its traffic is not restricted as before. | Read its status. | oc describe egressfirewall NAME -n NAMESPACE
NotAssigned | One of its addresses is assigned to no node, so that traffic leaves the cluster with another address. | Check that a node with the label
	k8s.ovn.org/egress-assignable is ready and has the subnet. | oc describe egressip NAME`)

// route is a Route (route.openshift.io/v1) without its host and certificates.
type route struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		// Ingress has an entry for each router that selects the route.
		Ingress []struct {
			RouterName string     `json:"routerName"`
			Conditions conditions `json:"conditions"`
		} `json:"ingress"`
	} `json:"status"`
}

// ingressController is an IngressController (operator.openshift.io/v1).
type ingressController struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

func (s *sampler) routing(ctx context.Context) {
	found := kept(readAs[route](ctx, s, routes(), baseline.Route))
	for i := range found {
		s.keep(baseline.Key{Kind: baseline.Route, Namespace: found[i].Namespace, Name: found[i].Name}, routeOf(&found[i]))
	}
	controllers := kept(readAs[ingressController](ctx, s, ingressControllers(), baseline.IngressController))
	for i := range controllers {
		of := &controllers[i]
		object := baseline.Object{Generation: of.Generation}
		for _, each := range []struct{ kind, status, reason string }{
			{"Available", conditionFalse, "Unavailable"}, {"Degraded", conditionTrue, "Degraded"}, {"CanaryChecksSucceeding", conditionFalse, "CanaryChecksFailing"},
		} {
			if state := of.Status.Conditions.of(each.kind); state.Status == each.status {
				object.Add(state.problem(each.reason))
			}
		}
		s.keep(baseline.Key{Kind: baseline.IngressController, Namespace: of.Namespace, Name: of.Name}, object)
	}
}

func routeOf(of *route) baseline.Object {
	object := baseline.Object{Generation: of.Generation}
	for _, router := range of.Status.Ingress {
		admitted := router.Conditions.of("Admitted")
		if admitted.Status == conditionTrue {
			object.Ready++
			continue
		}
		problem := admitted.problem("NotAdmitted")
		problem.Message = fmt.Sprintf("router %s has not admitted it: %s", words.External(router.RouterName), problem.Message)
		object.Add(problem)
	}
	if len(of.Status.Ingress) == 0 {
		object.Add(baseline.Problem{Reason: "NotAdmitted", Message: "no router has admitted it"})
	}
	return object
}

// egressIP is an EgressIP (k8s.ovn.org/v1).
type egressIP struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		EgressIPs []string `json:"egressIPs"`
	} `json:"spec"`
	Status struct {
		Items []assignment `json:"items"`
	} `json:"status"`
}

// assignment is an address that a node has.
type assignment struct {
	EgressIP string `json:"egressIP"`
}

// egressFirewall is an EgressFirewall (k8s.ovn.org/v1).
type egressFirewall struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Status string `json:"status"`
	} `json:"status"`
}

// applied begins the status of an EgressFirewall that works (ovn-kubernetes go-controller pkg/ovn/egressfirewall.go).
const applied = "EgressFirewall Rules applied"

func (s *sampler) egress(ctx context.Context) {
	addresses := kept(readAs[egressIP](ctx, s, egressIPs(), baseline.EgressIP))
	for i := range addresses {
		of := &addresses[i]
		object := baseline.Object{Generation: of.Generation, Desired: count(len(of.Spec.EgressIPs)), Ready: count(len(of.Status.Items))}
		for _, wanted := range of.Spec.EgressIPs {
			if !of.assigns(wanted) {
				object.Add(baseline.Problem{Reason: "NotAssigned", Message: fmt.Sprintf("%s is assigned to no node", words.External(wanted))})
			}
		}
		s.keep(baseline.Key{Kind: baseline.EgressIP, Name: of.Name}, object)
	}
	firewalls := kept(readAs[egressFirewall](ctx, s, egressFirewalls(), baseline.EgressFirewall))
	for i := range firewalls {
		of := &firewalls[i]
		object := baseline.Object{Generation: of.Generation}
		if status := of.Status.Status; status != "" && !strings.HasPrefix(status, applied) {
			object.Add(baseline.Problem{Reason: "NotApplied", Message: words.External(status)})
		}
		s.keep(baseline.Key{Kind: baseline.EgressFirewall, Namespace: of.Namespace, Name: of.Name}, object)
	}
}

// assigns reports whether a node has the address, whose spelling may differ.
func (e *egressIP) assigns(wanted string) bool {
	return slices.ContainsFunc(e.Status.Items, func(item assignment) bool {
		return item.EgressIP == wanted || sameAddress(item.EgressIP, wanted)
	})
}

func sameAddress(a, b string) bool {
	one, err := netip.ParseAddr(a)
	if err != nil {
		return false
	}
	other, err := netip.ParseAddr(b)
	return err == nil && one == other
}

// count is a number of items of one object.
func count(items int) int32 { return int32(min(items, math.MaxInt32)) } //nolint:gosec // bounded here
