package certificate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/certificate"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

// now is the time at which the checks run.
var now = time.Date(2026, 6, 3, 8, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// issue is a certificate in PEM.
func issue(t *testing.T, name string, from, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// failing stands for an object that the server does not return, with an error that is neither Forbidden nor NotFound.
const failing = "failing"

// state is an API server: objects by their path. A path without one has none, and one with nil is forbidden.
type state map[string]any

const (
	managed    = "/api/v1/namespaces/openshift-config-managed/configmaps/"
	toKubelets = "/api/v1/namespaces/openshift-kube-apiserver-operator/configmaps/kube-apiserver-to-kubelet-client-ca"
	poolsPath  = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
	reviews    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

func (s state) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	object, known := s[r.URL.Path]
	secret := strings.Contains(r.URL.Path, "/secrets")
	switch {
	case secret && !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
		http.Error(w, "a Secret itself was requested", http.StatusTeapot)
		return
	case known && object == nil:
		w.WriteHeader(http.StatusForbidden)
		object = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden}
	case object == failing:
		w.WriteHeader(http.StatusBadRequest) // an error that clients do not retry
		object = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "BadRequest", "code": http.StatusBadRequest}
	case !known && secret:
		object = map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": []any{}}
	case !known:
		w.WriteHeader(http.StatusNotFound)
		object = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
	}
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func bundle(certificates ...string) any {
	return map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "data": map[string]string{"ca-bundle.crt": strings.Join(certificates, "")}}
}

func infrastructure(topology string) any {
	return map[string]any{
		"kind": "Infrastructure", "apiVersion": "config.openshift.io/v1", "metadata": map[string]any{"name": "cluster"},
		"status": map[string]any{"controlPlaneTopology": topology},
	}
}

const infrastructurePath = "/apis/config.openshift.io/v1/infrastructures/cluster"

// results are the findings of a check as "NAME OUTCOME REASON", with those messages.
func results(t *testing.T, tested check.Check, of state, from string) (found []string, messages string) {
	t.Helper()
	if _, ok := of[infrastructurePath]; !ok {
		of[infrastructurePath] = infrastructure("HighlyAvailable")
	}
	server := httptest.NewServer(of)
	t.Cleanup(server.Close)
	api, err := cluster.Connect(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := update.Parse(from, "4.19.0")
	if err != nil {
		t.Fatal(err)
	}
	subject := check.Subject{Cluster: snapshot.Of(api), Update: parsed, Now: now}
	var text bytes.Buffer
	for _, f := range collector.Collect(t.Context(), collector.Bind(subject, []check.Check{tested}),
		func(collector.Source, []finding.Finding) {}).Findings {
		found = append(found, fmt.Sprintf("%s %s %s", f.Name, f.Outcome, f.Reason))
		fmt.Fprintln(&text, f.Message)
	}
	return found, text.String()
}

func TestAuthorities(t *testing.T) {
	valid := issue(t, "signer@1", now.Add(-10*day), now.Add(20*day))
	ended := issue(t, "signer@0", now.Add(-40*day), now.Add(-day))
	late := issue(t, "signer@1", now.Add(-26*day), now.Add(4*day))
	young := issue(t, "kubelet-signer", now.Add(-time.Hour), now.Add(23*time.Hour))
	const aggregator, ingress = managed + "kube-apiserver-aggregator-client-ca", managed + "default-ingress-cert"
	const named = "Certificate-openshift-config-managed."
	for name, tc := range map[string]struct {
		reason  string
		of      state
		want    []string
		message string
	}{
		"Valid": {
			reason: "it is renewed in time", of: state{aggregator: bundle(valid)},
			want: []string{"Certificates Pass CertificatesValid"},
		},
		"Renewed": {
			reason: "one of them verifies what is signed now", of: state{aggregator: bundle(ended, valid)},
			want: []string{"Certificates Pass CertificatesValid"},
		},
		"Ended": {
			reason: "none verifies anything", of: state{aggregator: bundle(ended)},
			want: []string{named + "kube-apiserver-aggregator-client-ca Fail CertificateEnded"}, message: "expired at",
		},
		"Late": {reason: "the operator should have renewed it two days ago", of: state{aggregator: bundle(late)}, want: []string{named +
			"kube-apiserver-aggregator-client-ca Warn CertificateEnds"}, message: `ClusterOperator "kube-apiserver" has not renewed them`},
		"Young": {
			reason: "the first authorities of a cluster are valid for a day, and are renewed", of: state{aggregator: bundle(young)},
			want: []string{"Certificates Pass CertificatesValid"},
		},
		"Ingress": {
			reason: "no operator renews the default certificate of the ingress", of: state{ingress: bundle(young)},
			want: []string{named + "default-ingress-cert Warn CertificateEnds"}, message: "no operator renews them",
		},
		"Leaf": {
			reason: "the first of a chain is the certificate", of: state{ingress: bundle(ended, valid)},
			want: []string{named + "default-ingress-cert Fail CertificateEnded"},
		},
		"OldRoot": {
			reason: "a root that has ended does no harm in a chain", of: state{ingress: bundle(valid, ended)},
			want: []string{"Certificates Pass CertificatesValid"},
		},
		"Empty": {
			reason: "nothing is known about what its certificates are for", of: state{aggregator: bundle(), ingress: bundle(valid)},
			want:    []string{"Certificates Unknown CertificatesNotCovered"},
			message: "kube-apiserver-aggregator-client-ca contains no readable certificate",
		},
		"Forbidden": {
			reason: "the roles of auth permit it, as what other checks read", of: state{aggregator: nil, ingress: bundle(valid)},
			want: []string{"Certificates Unknown Forbidden"}, message: "kube-apiserver-aggregator-client-ca",
		},
		"Failing": {
			reason: "an error of the server is no proof", of: state{aggregator: failing, ingress: bundle(valid)},
			want: []string{"Certificates Unknown Error"}, message: "kube-apiserver-aggregator-client-ca",
		},
		"NoPools": {
			reason: "how long the update takes is not known", of: state{aggregator: bundle(valid), poolsPath: nil},
			want: []string{"Certificates Unknown NotRead"},
		},
		"None": {
			reason: "the server states that there are none", of: state{},
			want: []string{"Certificates Skipped CertificatesNotCovered"},
		},
		"EndedBeside": {
			reason: "what has ended counts beside what was not read", of: state{aggregator: bundle(ended), ingress: nil},
			want: []string{named + "kube-apiserver-aggregator-client-ca Fail CertificateEnded", "Certificates Unknown Forbidden"},
		},
		"Hosted": {
			reason: "they are in the management cluster", of: state{infrastructurePath: infrastructure("External")},
			want: []string{"Certificates Skipped HyperShift"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, messages := results(t, certificate.Authorities(), tc.of, "4.18.3")
			if diff := cmp.Diff(tc.want, got); diff != "" || !strings.Contains(messages, tc.message) {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, messages)
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	const namespace = "/api/v1/namespaces/openshift-kube-apiserver/secrets"
	secrets := func(name string, from, until any) any {
		annotations := map[string]any{"auth.openshift.io/certificate-not-before": from, "auth.openshift.io/certificate-not-after": until}
		return map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": []any{map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
			"metadata": map[string]any{"namespace": "openshift-kube-apiserver", "name": name, "annotations": annotations},
		}}}
	}
	text := func(after time.Duration) string { return now.Add(after).Format(time.RFC3339) }
	permitted := map[string]any{
		"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
		"status": map[string]any{"allowed": true},
	}
	denied := map[string]any{
		"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
		"status": map[string]any{"allowed": false},
	}
	const notCovered, kubelet = "CertificateSecrets Skipped CertificatesNotCovered", "Certificate-openshift-kube-apiserver.kubelet-client "
	for name, tc := range map[string]struct {
		reason string
		of     state
		want   []string
	}{
		"Valid": {reason: "it is renewed in time", of: state{
			reviews:   permitted,
			namespace: secrets("kubelet-client", text(-10*day), text(20*day)),
		}, want: []string{"CertificateSecrets Pass CertificatesValid"}},
		"Ended": {reason: "its operator does not run", of: state{
			reviews:   permitted,
			namespace: secrets("kubelet-client", text(-31*day), text(-day)),
		}, want: []string{kubelet + "Fail CertificateEnded"}},
		"Late": {reason: "its operator has not renewed it", of: state{
			reviews:   permitted,
			namespace: secrets("kubelet-client", text(-26*day), text(4*day)),
		}, want: []string{kubelet + "Warn CertificateEnds"}},
		"Revision": {
			reason: "a copy for a revision that is not used any more ends",
			of:     state{reviews: permitted, namespace: secrets("kubelet-client-7", text(-31*day), text(-day))}, want: []string{notCovered},
		},
		"Malformed": {
			reason: "an annotation that is no time",
			of:     state{reviews: permitted, namespace: secrets("kubelet-client", "x", text(20*day))}, want: []string{notCovered},
		},
		"Denied": {
			reason: "no Secret is requested without the permission",
			of:     state{reviews: denied, namespace: secrets("kubelet-client", text(-31*day), text(-day))}, want: []string{notCovered},
		},
		"Partly": {reason: "what was not read is no pass", of: state{
			reviews: permitted, "/api/v1/namespaces/openshift-etcd/secrets": nil,
			namespace: secrets("kubelet-client", text(-10*day), text(20*day)),
		}, want: []string{"CertificateSecrets Unknown Forbidden"}},
		"Failing": {reason: "an error of the server is no proof", of: state{
			reviews: permitted,
			"/api/v1/namespaces/openshift-etcd/secrets": failing,
		}, want: []string{"CertificateSecrets Unknown Error"}},
		"Review": {reason: "nor is one of the review", of: state{reviews: failing}, want: []string{"CertificateSecrets Unknown Error"}},
		"Beside": {
			reason: "what has ended counts beside what was not read", of: state{
				reviews: permitted,
				"/api/v1/namespaces/openshift-etcd/secrets": failing, namespace: secrets("kubelet-client", text(-31*day), text(-day)),
			},
			want: []string{kubelet + "Fail CertificateEnded", "CertificateSecrets Unknown Error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, messages := results(t, certificate.Secrets(), tc.of, "4.18.3")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, messages)
			}
		})
	}
	if reads := certificate.Secrets().Reads; strings.Contains(fmt.Sprint(reads), "secrets") {
		t.Errorf("a role would permit to read Secrets: %+v", reads)
	}
}

func TestPausedPools(t *testing.T) {
	rotated := now.Add(-5 * day)
	oldSigner := issue(t, "kube-apiserver-to-kubelet-signer", now.Add(-300*day), now.Add(65*day))
	newSigner := issue(t, "openshift-kube-apiserver-operator_kube-apiserver-to-kubelet-signer@1780000000", rotated, rotated.Add(365*day))
	pool := func(status string, since time.Time, edit func(spec map[string]any)) any {
		spec := map[string]any{"paused": true, "configuration": map[string]any{"name": "rendered-worker-2"}}
		if edit != nil {
			edit(spec)
		}
		return map[string]any{
			"kind": "MachineConfigPoolList", "apiVersion": "machineconfiguration.openshift.io/v1",
			"items": []any{map[string]any{
				"kind": "MachineConfigPool", "apiVersion": "machineconfiguration.openshift.io/v1", "metadata": map[string]any{"name": "worker"},
				"spec": spec,
				"status": map[string]any{
					"machineCount": 3, "configuration": map[string]any{"name": "rendered-worker-1"},
					"conditions": []any{map[string]any{"type": "Updated", "status": status, "lastTransitionTime": since.Format(time.RFC3339)}},
				},
			}},
		}
	}
	const waits, fine = "PausedPoolKubeletCA-worker Warn KubeletCAWaits", "PausedPoolKubeletCA Pass CertificatesValid"
	for name, tc := range map[string]struct {
		reason string
		from   string
		of     state
		want   string
	}{
		"Before": {
			reason: "the pool waited already when it was renewed",
			of:     state{poolsPath: pool("False", rotated.Add(-9*day), nil), toKubelets: bundle(oldSigner, newSigner)}, want: waits,
		},
		"By": {
			reason: "the renewal itself is what waits",
			of:     state{poolsPath: pool("False", rotated.Add(time.Minute), nil), toKubelets: bundle(newSigner, oldSigner)}, want: waits,
		},
		"After": {
			reason: "the nodes got it before the pool was paused",
			of:     state{poolsPath: pool("False", rotated.Add(2*day), nil), toKubelets: bundle(oldSigner, newSigner)}, want: fine,
		},
		"AllEnded": {reason: "what the nodes have was removed from the bundle when it ended", of: state{poolsPath: pool("False",
			rotated.Add(-9*day), nil), toKubelets: bundle(newSigner)}, want: "PausedPoolKubeletCA-worker Fail KubeletCAWaits"},
		"NotRenewed": {
			reason: "the authority is that of the installer, which every node has",
			of:     state{poolsPath: pool("False", now.Add(-400*day), nil), toKubelets: bundle(oldSigner)}, want: fine,
		},
		"NotPaused": {
			reason: "it is on the way",
			of:     state{poolsPath: pool("False", rotated, func(spec map[string]any) { spec["paused"] = false })}, want: fine,
		},
		"UpToDate": {reason: "nothing is pending", of: state{poolsPath: pool("True", rotated,
			func(spec map[string]any) { spec["configuration"] = map[string]any{"name": "rendered-worker-1"} })}, want: fine},
		"Forbidden": {
			reason: "a pool waits, and for what is not known", of: state{poolsPath: pool("False", rotated, nil), toKubelets: nil},
			want: "PausedPoolKubeletCA Unknown Forbidden",
		},
		"SinceThen": {reason: "from 4.13 on nodes get it without their pool", from: "4.13.0", of: state{
			poolsPath:  pool("False", rotated, nil),
			toKubelets: bundle(oldSigner, newSigner),
		}, want: "PausedPoolKubeletCA Skipped NotConcerned"},
		"Unparseable": {
			reason: "for what the pool waits is not known", of: state{poolsPath: pool("False", rotated, nil), toKubelets: bundle()},
			want: "PausedPoolKubeletCA Unknown CertificatesNotCovered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := tc.from
			if from == "" {
				from = "4.12.3"
			}
			got, messages := results(t, certificate.PausedPools(), tc.of, from)
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, messages)
			}
		})
	}
}
