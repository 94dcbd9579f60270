package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// updating is longer than an update. A certificate that expires within soon results in
// a warning.
const updating, soon = 24 * time.Hour, 30 * 24 * time.Hour

// serving checks the certificates that the administrator provides.
func serving(ctx context.Context, t *preflight.T) error {
	kube, openshift, _, err := connect()
	if err != nil {
		return err
	}
	apiServer, err := openshift.APIServers().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	for _, named := range apiServer.Spec.ServingCerts.NamedCertificates {
		secret, err := kube.CoreV1().Secrets("openshift-config").Get(ctx, named.ServingCertificate.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("cannot read a certificate in openshift-config: %w", err)
		}
		chain, err := cert.ParseCertsPEM(secret.Data[corev1.TLSCertKey])
		if err != nil {
			return fmt.Errorf("cannot read the certificate in Secret openshift-config/%s: %w", secret.Name, err)
		}
		for _, c := range chain {
			if time.Until(c.NotAfter) < soon {
				report(t, secret.ObjectMeta, c.NotAfter)
				t.Remedyf("Replace the certificate.")
				t.Commandf("oc create secret tls %s -n openshift-config --cert=tls.crt --key=tls.key --dry-run=client -o yaml | oc replace -f -",
					secret.Name)
			}
		}
	}
	return nil
}

// signers checks the certificates that the operator renews after at most four fifths of
// their lifetime (library-go pkg/operator/certrotation).
func signers(ctx context.Context, t *preflight.T) error {
	_, _, objects, err := connect()
	if err != nil {
		return err
	}
	list, err := objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("openshift-kube-apiserver-operator").
		List(ctx, metav1.ListOptions{LabelSelector: "auth.openshift.io/managed-certificate-type=signer"})
	if err != nil {
		return fmt.Errorf("cannot list the signers of the operator: %w", err)
	}
	for _, secret := range list.Items {
		end, errEnd := time.Parse(time.RFC3339, secret.Annotations["auth.openshift.io/certificate-not-after"])
		begin, errBegin := time.Parse(time.RFC3339, secret.Annotations["auth.openshift.io/certificate-not-before"])
		if err := cmp.Or(errEnd, errBegin); err != nil {
			return fmt.Errorf("cannot parse the lifetime in the annotations of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		if time.Until(end) < end.Sub(begin)/10 {
			report(t, secret.ObjectMeta, end)
			t.Remedyf("Read why %s is not renewed.", secret.Name)
			t.Commandf("oc describe clusteroperator kube-apiserver")
		}
	}
	return nil
}

// report fails for a certificate that may expire during the update, and otherwise warns.
func report(t *preflight.T, secret metav1.ObjectMeta, end time.Time) {
	outcomef := t.Warnf
	if time.Until(end) < updating {
		outcomef = t.Failf
	}
	t.Reason("CertificateExpiry")
	outcomef("a certificate in Secret %s/%s expires at %s", secret.Namespace, secret.Name, end.UTC().Format(time.RFC3339))
	t.Object(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name})
}

// connect uses the same configuration as oc; in a pod, the configuration of the pod. The last client
// reads only the metadata of Secrets, not their keys.
func connect() (*kubernetes.Clientset, *configclient.ConfigV1Client, metadata.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	kube, errKube := kubernetes.NewForConfig(config)
	openshift, errOpenshift := configclient.NewForConfig(config)
	objects, errMetadata := metadata.NewForConfig(config)
	return kube, openshift, objects, cmp.Or(errKube, errOpenshift, errMetadata)
}
