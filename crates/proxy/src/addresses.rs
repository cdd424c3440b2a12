//! Addresses: their spellings, the blocks with a special use, and ranges of them.
//!
//! An address is compared only in its canonical form: a mapped address (`::ffff:10.0.0.1`) is the IPv4 address, because
//! that is what the kernel connects to. A resolver takes more spellings of an IPv4 address than the dotted one, so they are
//! read here as the C library reads them ([`legacy_ipv4`]) and never handed to a resolver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of IPv4 that are not plain internet addresses: those of IANA's registry of special purposes, and multicast.
const SPECIAL_V4: [(Ipv4Addr, u32, &str); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an unspecified address"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's shared network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "a documentation address"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network"),
    (Ipv4Addr::new(192, 175, 48, 0), 24, "a reserved address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "a benchmark network"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "a documentation address"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "a documentation address"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// The same for IPv6. The internet uses only `2000::/3`, so everything outside of it is special too; the blocks listed here
/// from outside are those with a better description.
const SPECIAL_V6: [(Ipv6Addr, u32, &str); 13] = [
    (Ipv6Addr::LOCALHOST, 128, "this machine"),
    (Ipv6Addr::UNSPECIFIED, 128, "an unspecified address"),
    (Ipv6Addr::UNSPECIFIED, 96, "an IPv4 address in an obsolete form"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "a Teredo tunnel"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "a reserved address"),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32, "a documentation address"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "a 6to4 tunnel"),
    (Ipv6Addr::new(0x2620, 0x004f, 0x8000, 0, 0, 0, 0, 0), 48, "a reserved address"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "a documentation address"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "a private network"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "a link-local address"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "a private network"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "a multicast address"),
];

/// The block of IPv6 that the internet uses.
const INTERNET_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The block in which a network without IPv4 reaches IPv4 addresses (NAT64). On such a network every public name leads to
/// it, so an address in it is judged by the IPv4 address that it contains.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x0064, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

fn in_v6(address: Ipv6Addr, block: Ipv6Addr, bits: u32) -> bool {
    address.to_bits() >> (128 - bits) == block.to_bits() >> (128 - bits)
}

/// The special use of an address, as words; `None` for a plain internet address.
pub(crate) fn special_use(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => match nat64(v6) {
            Some(inner) => special_v4(inner),
            None => special_v6(v6),
        },
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let is_in =
        |block: Ipv4Addr, bits: u32| address.to_bits() >> (32 - bits) == block.to_bits() >> (32 - bits);
    SPECIAL_V4.iter().find(|(block, bits, _)| is_in(*block, *bits)).map(|(_, _, words)| *words)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let listed = SPECIAL_V6.iter().find(|(block, bits, _)| in_v6(address, *block, *bits));
    match listed {
        Some((_, _, words)) => Some(words),
        None if in_v6(address, INTERNET_V6.0, INTERNET_V6.1) => None,
        None => Some("a reserved address"),
    }
}

/// The IPv4 address that a NAT64 address leads to.
pub(crate) fn nat64(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., a, b, c, d] = address.octets();
    in_v6(address, NAT64.0, NAT64.1).then(|| Ipv4Addr::new(a, b, c, d))
}

/// A range of addresses, in canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressRange {
    first: IpAddr,
    bits: u32,
}

impl AddressRange {
    /// The range of one address.
    pub(crate) fn single(address: IpAddr) -> Self {
        let first = address.to_canonical();
        Self { first, bits: width(first) }
    }

    /// Reads `ADDRESS/BITS`; the error says what to write instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (address, bits) = text.split_once('/').ok_or("a range has the form `10.0.0.0/8`")?;
        let address: IpAddr =
            address.parse().map_err(|_| "a range has the form `10.0.0.0/8` or `fd00::/8`")?;
        if address != address.to_canonical() {
            return Err("write the IPv4 range that it contains".to_owned());
        }
        let whole = width(address);
        let is_number = !bits.is_empty() && bits.len() <= 3 && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = bits.parse::<u32>().ok().filter(|bits| is_number && *bits <= whole);
        let bits = bits.ok_or_else(|| format!("the number after `/` is from 0 to {whole}"))?;
        let first = masked(address, bits);
        if first != address {
            return Err(format!("the range begins at another address: write `{first}/{bits}`"));
        }
        Ok(Self { first, bits })
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && masked(address, self.bits) == self.first
    }
}

/// The number of bits of an address.
fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The first address of the range of `bits` bits that an address is in.
fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

/// Tells whether a name ends as only an address can: its last label is a number. Such text is an address or nothing.
pub(crate) fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Reads an IPv4 address as `inet_aton` does: one to four numbers, each decimal, octal or hexadecimal; the last one fills all
/// bytes that are left.
pub(crate) fn legacy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let numbers: Vec<u64> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, before) = numbers.split_last()?;
    if before.len() > 3 || before.iter().any(|number| *number > 255) {
        return None;
    }
    let room = 32 - 8 * before.len();
    if *last >= 1 << room {
        return None;
    }
    let high = before.iter().fold(0, |sum, number| sum << 8 | number);
    u32::try_from(high << room | last).ok().map(Ipv4Addr::from_bits)
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    // `from_str_radix` takes a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    // Leading zeros may make a small number long.
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() && !text.is_empty() {
        return Some(0);
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_internet_addresses_have_no_special_use() {
        for (address, special) in [
            ("127.0.0.1", true),
            ("127.255.255.254", true),
            ("10.0.0.1", true),
            ("11.0.0.1", false),
            ("172.15.255.255", false),
            ("172.16.0.1", true),
            ("172.31.255.255", true),
            ("172.32.0.1", false),
            ("192.168.1.1", true),
            ("100.63.255.255", false),
            ("100.64.0.1", true),
            ("100.127.255.255", true),
            ("100.128.0.1", false),
            ("169.254.169.254", true),
            ("169.253.0.1", false),
            ("0.0.0.0", true),
            ("0.1.2.3", true),
            ("192.0.0.8", true),
            ("192.0.2.1", true),
            ("198.17.255.255", false),
            ("198.18.0.1", true),
            ("198.19.255.255", true),
            ("198.20.0.1", false),
            ("198.51.100.1", true),
            ("203.0.113.1", true),
            ("223.255.255.255", false),
            ("224.0.0.1", true),
            ("239.255.255.255", true),
            ("240.0.0.1", true),
            ("255.255.255.255", true),
            ("192.88.99.1", true),
            ("93.184.216.34", false),
            ("::", true),
            ("::1", true),
            ("::127.0.0.1", true),
            ("::93.184.216.34", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:169.254.169.254", true),
            ("::ffff:93.184.216.34", false),
            ("64:ff9b::7f00:1", true),
            ("64:ff9b::a9fe:a9fe", true),
            ("64:ff9b::5db8:d822", false),
            ("64:ff9b:1::1", true),
            ("100::1", true),
            ("2001::1", true),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", true),
            ("2001:20::1", true),
            ("2001:200::1", false),
            ("2001:db8::1", true),
            ("2002:7f00:1::", true),
            ("2002:5db8:d822::", true),
            ("2606:2800:220:1::1", false),
            ("2620:4f:8000::1", true),
            ("3fff::1", true),
            ("5f00::1", true),
            ("fc00::1", true),
            ("fd00:ec2::254", true),
            ("fe80::1", true),
            ("fec0::1", true),
            ("ff02::1", true),
        ] {
            assert_eq!(special_use(address.parse().unwrap()).is_some(), special, "{address}");
        }
    }

    #[test]
    fn an_old_spelling_is_read_as_the_c_library_reads_it() {
        for (text, address) in [
            ("127.0.0.1", Some("127.0.0.1")),
            ("2130706433", Some("127.0.0.1")),
            ("0x7f000001", Some("127.0.0.1")),
            ("0X7F.1", Some("127.0.0.1")),
            ("017700000001", Some("127.0.0.1")),
            ("0177.0.0.1", Some("127.0.0.1")),
            ("0000177.0.0.1", Some("127.0.0.1")),
            ("127.1", Some("127.0.0.1")),
            ("127.0.1", Some("127.0.0.1")),
            ("10.65535", Some("10.0.255.255")),
            ("0x0000000000000000007f.1", Some("127.0.0.1")),
            ("0", Some("0.0.0.0")),
            ("0x", Some("0.0.0.0")),
            ("00", Some("0.0.0.0")),
            ("4294967295", Some("255.255.255.255")),
            ("4294967296", None),
            ("99999999999999999999999999", None),
            ("256.0.0.1", None),
            ("1.2.3.256", None),
            ("1.2.3.4.5", None),
            ("08.0.0.1", None),
            ("0xg.1", None),
            ("+1.0.0.1", None),
            ("0x+1.1", None),
            ("1..1", None),
            ("", None),
        ] {
            assert_eq!(legacy_ipv4(text).map(|found| found.to_string()).as_deref(), address, "{text}");
        }
    }

    #[test]
    fn a_range_contains_an_address_in_every_form() {
        for (range, address, contained) in [
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("10.0.0.0/8", "64:ff9b::a01:101", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "2606::1", false),
            ("::/0", "2606::1", true),
            ("::/0", "::ffff:1.2.3.4", false),
            ("192.168.1.7/32", "192.168.1.7", true),
            ("192.168.1.7/32", "192.168.1.6", false),
            ("fd00::/8", "fdab::1", true),
            ("fd00::/8", "fc00::1", false),
        ] {
            let range = AddressRange::parse(range).unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), contained, "{range:?} {address}");
        }
    }

    #[test]
    fn a_range_that_says_less_than_it_seems_to_is_refused() {
        for text in [
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10/8",
            "::ffff:0.0.0.0/96",
            "fd00::1/8",
        ] {
            assert!(AddressRange::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            AddressRange::parse("10.1.0.0/8").unwrap_err(),
            "the range begins at another address: write `10.0.0.0/8`"
        );
    }
}
