package redaction

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
)

const (
	// maxAddresses bounds the addresses that are learned.
	maxAddresses = 500_000
	// firstAddress and firstAddress6 precede the replacements of addresses.
	firstAddress, firstAddress6 = "10.0.0.0", "2001:db8::"
)

type addresses struct {
	of          map[netip.Addr]netip.Addr
	last, last6 netip.Addr
	exceeded    bool
}

func newAddresses() addresses {
	return addresses{of: map[netip.Addr]netip.Addr{}, last: netip.MustParseAddr(firstAddress), last6: netip.MustParseAddr(firstAddress6)}
}

func (a *addresses) add(address netip.Addr) {
	if !address.IsValid() || meaningful(address) {
		return
	}
	if _, known := a.of[address]; known {
		return
	}
	if a.exceeded = len(a.of) >= maxAddresses; !a.exceeded {
		a.of[address] = netip.Addr{}
	}
}

// seal makes the replacements, in the order of the addresses.
func (a *addresses) seal() error {
	if a.exceeded {
		return errors.New("the names cannot be replaced: there are more than 500 000 addresses")
	}
	for _, address := range slices.SortedFunc(maps.Keys(a.of), netip.Addr.Compare) {
		a.of[address] = a.next(address)
	}
	return nil
}

func (a *addresses) replace(address netip.Addr) netip.Addr {
	if meaningful(address) {
		return address
	}
	if !a.of[address].IsValid() { // in no object that was learned from
		a.of[address] = a.next(address)
	}
	return a.of[address]
}

func (a *addresses) next(like netip.Addr) netip.Addr {
	last := &a.last
	if like.Is6() {
		last = &a.last6
	}
	*last = last.Next()
	return *last
}

// meaningful is true for addresses that are the same in each cluster.
func meaningful(address netip.Addr) bool {
	return address.IsUnspecified() || address.IsLoopback() || address == netip.MustParseAddr("255.255.255.255")
}

func addressOf(text string) netip.Addr {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}
	}
	return address
}

// dashes begin an address in the name of a machine, such as ip-10-0-0-1.
const dashes = "ip-"

// undashed is the address in such a name; invalid where it is none.
func undashed(text string) netip.Addr {
	return addressOf(strings.ReplaceAll(strings.TrimPrefix(text, dashes), "-", "."))
}

// validities returns certificates that replace the ones in a text in PEM, with their validity and nothing else;
// empty if the text has none. Their key is not secret. Of a name only the "@" remains, which names of signers have
// that an operator renewed (library-go pkg/operator/certrotation/signer.go).
func validities(text string) string {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	var redacted strings.Builder
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return redacted.String()
		}
		of, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		made := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: of.NotBefore, NotAfter: of.NotAfter}
		if strings.Contains(of.Subject.CommonName, "@") {
			made.Subject = pkix.Name{CommonName: "@"}
		}
		if der, err := x509.CreateCertificate(nil, made, made, key.Public(), key); err == nil {
			redacted.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		}
	}
}
