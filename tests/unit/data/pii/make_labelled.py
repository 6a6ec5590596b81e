#!/usr/bin/env python3
"""Prints texts with personal data at known places, and texts that only look like it: labelled.jsonl.

usage: make_labelled.py [SEED] > labelled.jsonl
       (in a virtual environment with Faker==40.63.0, phonenumbers==9.0.43 and python-stdnum==2.2)

What is to be found comes from packages that know nothing of the rules under test: names, addresses, cards, accounts
and identity numbers from Faker's locales, telephone numbers from Google's metadata (a random number that it holds for
valid, as it writes it) and from Faker, check digits from python-stdnum. Keys are random in the form that their issuers
document. The sentences around are our own. A line is {"text": [...], "spans": [[begin, end, type], ...]}, in bytes of
the joined text, which is cut inside of each find: the file holds nothing that a scanner for secrets would stop. The
rules were tuned with other seeds than that of the committed file, 20261201.
"""

import base64
import ipaddress
import json
import random
import string
import sys

import phonenumbers
from faker import Faker
from phonenumbers import PhoneNumberFormat, PhoneNumberType
from stdnum import ean, iban, isbn

LOCALES = (
    "en_US",
    "en_GB",
    "en_CA",
    "en_AU",
    "en_IN",
    "de_DE",
    "fr_FR",
    "es_ES",
    "it_IT",
    "nl_NL",
    "pl_PL",
    "pt_BR",
    "ru_RU",
    "ja_JP",
    "zh_CN",
    "sv_SE",
    "cs_CZ",
    "tr_TR",
)
# Region, Faker's locale, words before a number that tell it, words that do not.
PHONES = (
    (
        "US",
        "en_US",
        ("Call me at {}.", "Phone: {}", "Fax {} (office hours)"),
        ("You will find us under {} all day.", "Jane Miller, Portland, {}"),
    ),
    (
        "CA",
        "en_CA",
        ("Telephone {}", "reach us by phone on {}, please"),
        ("Ottawa office: {}", "{} is the desk in Toronto"),
    ),
    ("GB", "en_GB", ("Tel: {}", "Ring {} before noon"), ("The surgery is on {} now.", "{} (Leeds branch)")),
    (
        "DE",
        "de_DE",
        ("Telefon {}", "Rufen Sie uns an: {}", "Mobil: {}"),
        ("Praxis Dr. Weber, Gartenweg 3, {}", "Unter {} ist immer jemand da."),
    ),
    (
        "FR",
        "fr_FR",
        ("Tél. : {}", "Appelez le {} pour réserver"),
        ("Mairie de Vitré, {}", "Le secrétariat répond au {} le matin."),
    ),
    (
        "ES",
        "es_ES",
        ("Teléfono: {}", "Llame al {} para más información", "Móvil {}"),
        ("Clínica Sol, Calle Mayor 4, {}",),
    ),
    ("IT", "it_IT", ("Tel. {}", "Chiamare il {} dopo le nove", "Cell. {}"), ("Studio Rossi, via Po 12, {}",)),
    ("NL", "nl_NL", ("Telefoon: {}", "Bel {} voor een afspraak"), ("Huisarts De Vries, {}",)),
    (
        "PL",
        "pl_PL",
        ("Telefon: {}", "Zadzwoń pod {} po południu", "tel. kom. {}"),
        ("Gabinet Nowak, ul. Długa 5, {}",),
    ),
    ("BR", "pt_BR", ("Telefone: {}", "Ligue para {} hoje", "Celular {}"), ("Padaria Boa Vista, {}",)),
    ("IN", "en_IN", ("Mobile: {}", "Call {} to order", "Phone no. {}"), ("Sharma Sweets, Pune, {}",)),
    ("CN", "zh_CN", ("电话：{}", "联系电话 {}"), ("北京办事处 {}",)),
    ("JP", "ja_JP", ("電話：{}", "TEL {}"), ("東京本社 {}", "お問い合わせ {}まで")),
    ("AU", "en_AU", ("Phone {}", "call {} after hours"), ("Perth clinic, {}", "{} (Sydney)")),
    ("RU", "ru_RU", ("Тел.: {}", "Звоните по номеру {}"), ("Приёмная, {}", "{} круглосуточно")),
)
PLAIN = (
    "It says {} on the form.",
    "{}",
    "Please note {}, and keep it safe.",
    "• {}\n• none",
    "value: {}",
    "name;{};yes",
    'We got "{}" from the customer.',
    "({})",
    "Last seen: {}. Then nothing.",
    "The entry {} was wrong.",
)
FOREIGN = (
    "Auf dem Zettel steht {}.",
    "C'est {} qui figure au dossier.",
    "En la ficha pone {}.",
    "В карточке указано {}.",
    "記録には {} とあります。",
    "登记的是 {} 。",
    "Nel modulo c'è {}.",
    "Na karcie jest {}.",
)
MAIL = (
    "Write to {} for details.",
    "From: {}",
    "<{}>",
    "Contact {}.",
    "{} wrote:",
    "cc: {}, bob",
    "mailto:{}",
    "Maintainer: Ann Bee <{}>",
    "Bugs go to {} (list).",
    "Schreiben Sie an {}!",
    "Écrivez à {} svp",
    "Пишите на {}.",
    "メールは {} まで",
    "请发邮件至 {} 。",
)
HOSTS = (
    "ping {} from here",
    "The server at {} did not answer.",
    "Connection from {} closed",
    "nameserver {}",
    "host {} down",
    "client {} requested /index.html",
    '{} - - "GET / HTTP/1.1" 200',
    "ssh root@{}",
    "http://{}/status",
    "allow {};",
    "remote address: {}",
    "peer {} timed out",
    "Blocked {} after 5 attempts",
)


class Rows:
    def __init__(self):
        self.rows = []

    def add(self, template: str, value: str, kind: str | None):
        before, after = template.split("{}")
        text = before + value + after
        begin = len(before.encode())
        self.rows.append({"text": text, "spans": [[begin, begin + len(value.encode()), kind]] if kind else []})

    def none(self, text: str):
        self.rows.append({"text": text, "spans": []})


def mail(rows: Rows, fakers: dict, rng: random.Random):
    for locale in LOCALES:
        for _ in range(6):
            rows.add(
                rng.choice(MAIL),
                fakers[locale].ascii_email() if rng.random() < 0.5 else fakers[locale].ascii_free_email(),
                "email",
            )
    people = ("jürgen.groß", "zoë", "andré.lefèvre", "иван.петров", "мария", "josé-luis", "łukasz", "søren", "αθηνά")
    hosts = (
        "müller.de",
        "café-du-port.fr",
        "почта.рф",
        "例子.中国",
        "はじめ.jp",
        "mañana.es",
        "bücher.ch",
        "xn--bcher-kva.ch",
        "παράδειγμα.gr",
    )
    for _ in range(30):
        local = rng.choice(people) if rng.random() < 0.6 else rng.choice(("info", "a.b", "sales"))
        rows.add(rng.choice(MAIL[:10]), f"{local}@{rng.choice(hosts)}", "email")
    for _ in range(40):
        local, host = fakers["en_US"].ascii_free_email().split("@")
        at = rng.choice((" (at) ", " [at] ", "(at)", "[at]", " at ", "{at}", " AT ", "@", " [AT] "))
        dot = (
            rng.choice((" (dot) ", "(dot)", "[dot]", " [dot] ", "{dot}"))
            if at not in (" at ", " AT ")
            else at.replace("at", "dot").replace("AT", "DOT")
        )
        if at not in ("@", " at ", " AT ") and rng.random() < 0.4:
            dot = "."
        rows.add(rng.choice(MAIL[:6]), local + at + host.replace(".", dot), "email")
    for text in (
        "systemctl restart getty@tty1.service",
        "user@1000.service is active",
        "@property def x(self)",
        "x = a@b.T",
        "git clone git@{}:team/app.git",
        "push @array, $x@$y",
        "printf '%s@%s' a b",
        "@media screen and (max-width: 3em)",
        "fish@host:~$ ls",
        "npm install @types/node@18.0.1",
        "Look at the dot in the middle.",
        "We met at noon at a dot com firm",
        "the value (at) time t",
        "retweet @someone, please",
        "foo@bar",
        "arrive at example time",
        "libfoo@GLIBC_2.2.5",
        "uid=0(root)@host",
        "E@mc2 is wrong",
        "wire @ 5 mm, 3 @ 1.50",
    ):
        rows.none(text.format("example.org") if "{}" in text and "git" in text else text)


def addresses(rows: Rows, fakers: dict, rng: random.Random):
    count = 0
    while count < 110:
        address = (
            fakers["en_US"].ipv4_public() if rng.random() < 0.5 else str(ipaddress.IPv4Address(rng.getrandbits(32)))
        )
        parsed = ipaddress.ip_address(address)
        if not parsed.is_global or parsed.is_multicast:
            continue
        rows.add(rng.choice(HOSTS + PLAIN), address, "ipv4")
        count += 1
    blocks = [
        ipaddress.ip_network(b)
        for b in (
            "2001:200::/23",
            "2003::/18",
            "2400::/12",
            "2600::/12",
            "2620::/23",
            "2800::/12",
            "2a00::/12",
            "2c00::/12",
        )
    ]
    for _ in range(90):
        block = rng.choice(blocks)
        bits = rng.choice((48, 128))
        address = ipaddress.IPv6Address(
            int(block.network_address)
            | rng.getrandbits(128 - block.prefixlen) & ~((1 << (128 - bits)) - 1 if bits < 64 else 0)
        )
        if rng.random() < 0.3:
            address = ipaddress.IPv6Address((int(address) >> 64 << 64) | rng.getrandbits(12))
        if not address.is_global:
            continue
        written = rng.choice((address.compressed, address.compressed, address.exploded, address.compressed.upper()))
        rows.add(rng.choice(HOSTS[:8] + PLAIN), written, "ipv6")
    for _ in range(40):
        rows.none(rng.choice(HOSTS).format(fakers["en_US"].ipv4_private()))
        rows.none(
            rng.choice(HOSTS[:6]).format(
                rng.choice(
                    (
                        "fe80::1",
                        "::1",
                        "2001:db8::" + format(rng.getrandbits(16), "x"),
                        "fd00::42",
                        "ff02::1",
                        "127.0.0.1",
                        "203.0.113.7",
                    )
                )
            )
        )


def cards(rows: Rows, fakers: dict, rng: random.Random):
    kinds = ("visa16", "mastercard", "amex", "discover", "diners", "jcb16", "visa19", "maestro")
    for i in range(110):
        kind = kinds[i % len(kinds)]
        digits = fakers["en_US"].credit_card_number(card_type=kind)
        if kind == "jcb16" and not 3528 <= int(digits[:4]) <= 3589:
            continue  # Faker takes all of 35, JCB has these
        form = rng.choice(("", " ", "-"))
        if len(digits) == 15 and form:
            digits = form.join((digits[:4], digits[4:10], digits[10:]))
        elif len(digits) == 14 and form:
            digits = form.join((digits[:4], digits[4:10], digits[10:]))
        elif len(digits) in (16, 19) and form:
            digits = form.join(digits[j : j + 4] for j in range(0, len(digits), 4))
        template = rng.choice(
            (
                "Card number {}, valid thru 05/29",
                "Kreditkarte: {}",
                "carte bancaire {}",
                "card: {}",
                "paid by credit card {}",
            )
            + (PLAIN if len(digits) >= 15 else ())
        )
        rows.add(template, digits, "card")


def accounts(rows: Rows, fakers: dict, rng: random.Random):
    for locale in (
        "de_DE",
        "fr_FR",
        "es_ES",
        "it_IT",
        "nl_NL",
        "pl_PL",
        "en_GB",
        "pt_PT",
        "de_AT",
        "de_CH",
        "fi_FI",
        "no_NO",
        "sk_SK",
    ):
        for _ in range(8):
            number = fakers[locale].iban()
            if not iban.is_valid(number):
                continue
            rows.add(
                rng.choice(PLAIN + FOREIGN + ("IBAN: {}", "IBAN {}", "Konto {}", "Transfer to {} by Friday")),
                rng.choice((number, iban.format(number))),
                "iban",
            )


def identities(rows: Rows, fakers: dict, rng: random.Random):
    for _ in range(80):
        rows.add(
            rng.choice(PLAIN + ("SSN: {}", "Social security number {}", "SSN {}, DOB 1970-01-02")),
            fakers["en_US"].ssn(),
            "us_ssn",
        )
        rows.add(
            rng.choice(PLAIN + FOREIGN + ("身份证号：{}", "身份证{}，", "ID card {}")), fakers["zh_CN"].ssn(), "cn_id"
        )
        mobile = (
            fakers["zh_CN"].phone_number() if rng.random() < 0.6 else valid_number(rng, "CN", PhoneNumberType.MOBILE)
        )
        if isinstance(mobile, phonenumbers.PhoneNumber):
            mobile = phonenumbers.format_number(
                mobile,
                rng.choice((PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.NATIONAL, PhoneNumberFormat.E164)),
            )
        rows.add(
            rng.choice(
                (
                    "手机：{}",
                    "联系电话{}",
                    "请拨打 {} 咨询",
                    "张伟，{}，北京",
                    "手机号是{}。",
                    "Mobile: {}",
                    "call {} (Mr Li)",
                    "{}（李先生）",
                    "微信同号 {}",
                    "tel {}",
                )
            ),
            mobile,
            "cn_mobile",
        )


def valid_number(rng: random.Random, region: str, kind: int):
    example = phonenumbers.example_number_for_type(region, kind)
    if example is None:
        return None
    for _ in range(200):
        digits = phonenumbers.national_significant_number(example)
        kept = rng.randint(1, max(1, len(digits) - 6))
        digits = digits[:kept] + "".join(rng.choice(string.digits) for _ in digits[kept:])
        number = phonenumbers.parse(f"+{example.country_code}{digits}", None)
        if phonenumbers.is_valid_number(number):
            return number
    return example


def phones(rows: Rows, fakers: dict, rng: random.Random):
    for region, locale, told, untold in PHONES:
        for i in range(24):
            if i % 4 == 3 and locale != "zh_CN":
                written = fakers[locale].phone_number()
                try:
                    parsed = phonenumbers.parse(written, region)
                except phonenumbers.NumberParseException:
                    continue
                if not phonenumbers.is_valid_number(parsed):
                    continue
            else:
                kinds = [
                    PhoneNumberType.FIXED_LINE,
                    PhoneNumberType.TOLL_FREE if i % 8 == 2 else PhoneNumberType.FIXED_LINE,
                ]
                if region != "CN":
                    kinds.append(PhoneNumberType.MOBILE)
                number = valid_number(rng, region, kinds[i % len(kinds)])
                if number is None:
                    continue
                written = phonenumbers.format_number(
                    number,
                    (
                        PhoneNumberFormat.NATIONAL,
                        PhoneNumberFormat.INTERNATIONAL,
                        PhoneNumberFormat.NATIONAL,
                        PhoneNumberFormat.E164,
                    )[i % 4 if i % 8 else 3],
                )
            rows.add(rng.choice(told if rng.random() < 0.6 else untold), written, "phone")


def any_of(rng: random.Random, letters: str, count: int) -> str:
    return "".join(rng.choice(letters) for _ in range(count))


def keys(rows: Rows, fakers: dict, rng: random.Random):
    alnum = string.ascii_letters + string.digits
    url = alnum + "-_"
    forms = (
        lambda: "AKIA" + any_of(rng, string.ascii_uppercase + "234567", 16),
        lambda: "ASIA" + any_of(rng, string.ascii_uppercase + "234567", 16),
        lambda: rng.choice(("ghp_", "gho_", "ghs_", "ghu_")) + any_of(rng, alnum, 36),
        lambda: "github_pat_" + any_of(rng, alnum, 22) + "_" + any_of(rng, alnum, 59),
        lambda: "glpat-" + any_of(rng, url[:-2], 20),
        lambda: f"xoxb-{rng.randint(10**10, 10**12)}-{rng.randint(10**10, 10**12)}-" + any_of(rng, alnum, 24),
        lambda: f"xoxp-{rng.randint(10**10, 10**12)}-{rng.randint(10**10, 10**12)}-"
        + any_of(rng, "0123456789abcdef", 32),
        lambda: "AIza" + any_of(rng, url[:-2], 35),
        lambda: "sk_live_" + any_of(rng, alnum, 24),
        lambda: "rk_test_" + any_of(rng, alnum, 24),
        lambda: "sk-" + any_of(rng, alnum, 48),
        lambda: "sk-proj-" + any_of(rng, alnum, 60),
        lambda: "npm_" + any_of(rng, alnum, 36),
        lambda: "pypi-AgEIcHlwaS5vcmc" + any_of(rng, alnum, 70),
        lambda: "hf_" + any_of(rng, string.ascii_letters, 34),
        lambda: "SG." + any_of(rng, alnum, 22) + "." + any_of(rng, alnum, 43),
        lambda: ".".join(
            base64.urlsafe_b64encode(part).decode().rstrip("=")
            for part in (
                b'{"alg":"HS256","typ":"JWT"}',
                json.dumps({"sub": rng.randint(1, 10**9), "name": fakers["en_US"].name()}).encode(),
                rng.randbytes(32),
            )
        ),
    )
    around = (
        "export TOKEN={}",
        '"key": "{}",',
        "curl -H 'Authorization: Bearer {}' https://api.example.org/",
        "I pasted {} by mistake.",
        "token: {}",
        "key={};",
        "{}",
        "# {} <- rotate this",
        "login {} ok",
    )
    for i in range(119):
        rows.add(rng.choice(around), forms[i % len(forms)](), "api_key")


def private_keys(rows: Rows, fakers: dict, rng: random.Random):
    for name in (
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "DSA PRIVATE KEY",
    ):
        for _ in range(7):
            body = base64.b64encode(rng.randbytes(rng.choice((90, 121, 160)))).decode()
            lines = "\n".join(body[j : j + 64] for j in range(0, len(body), 64))
            rows.add(
                rng.choice(("key.pem:\n{}\n", "{}", "cat id\n{}\n$ ", "Here is my key:\n\n{}\nthanks")),
                f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----",
                "private_key",
            )


def passwords(rows: Rows, fakers: dict, rng: random.Random):
    alnum = string.ascii_letters + string.digits
    for _ in range(60):
        password = any_of(rng, alnum + "-_!", rng.randint(6, 14))
        before, after = rng.choice(
            (
                ("postgres://", "@db.example.org:5432/app"),
                ("https://", "@git.example.com/x.git"),
                ("redis://", "@cache:6379/0"),
                ("ftp://", "@ftp.example.net/pub"),
                ("mongodb+srv://", "@cluster0.example.mongodb.net/test"),
                ("amqp://", "@10.0.0.5/"),
            )
        )
        rows.add(
            rng.choice(("DATABASE_URL=X", "see X for it", 'url: "X"', "X")).replace("X", before + "{}" + after),
            fakers["en_US"].user_name() + ":" + password,
            "url_credentials",
        )


def no_secrets(rows: Rows, fakers: dict, rng: random.Random):
    for text in (
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE\n-----END CERTIFICATE-----",
        "grep 'BEGIN RSA PRIVATE KEY' *.pem",
        "set AWS_ACCESS_KEY_ID=AKIAXXXXXXXXXXXXXXXX",
        'token = os.environ["GITHUB_TOKEN"]',
        "api_key: YOUR_API_KEY_HERE_PLEASE",
        "sk-learn and task-runner",
        "the hf_transformers_module_of_the_library",
        "npm_config_registry=https://example.org",
        "http://example.org:8080/a@b",
        "https://example.org/?q=a:b@c",
        'secret_key_base: <%= ENV["SECRET_KEY_BASE"] %>',
        "eyJ is how JSON begins in base64",
        "access_token=$(cat file)",
        "https://$USER:$PASS@example.org/",
        "scheme://[user[:password]@]host",
        "risk-assessment-of-the-whole-project-2024",
        "sk_test_ keys are for tests",
        "disk-0123456789abcdef0123456789",
        "pypi-publish-action-with-trusted-publishers",
    ):
        rows.none(text)


def look_alikes(rows: Rows, fakers: dict, rng: random.Random):
    digit = lambda n: any_of(rng, string.digits, n)
    hexa = lambda n: any_of(rng, "0123456789abcdef", n)
    small = lambda: rng.randint(0, 20)
    makers = (
        lambda: f"Version {small()}.{small()}.{small()}.{small()} fixes it.",
        lambda: f"linux-image-{rng.randint(4, 6)}.{small()}.0-{rng.randint(10, 30)}-amd64",
        lambda: f"Chrome/{rng.randint(60, 130)}.0.{rng.randint(1000, 6000)}.{rng.randint(10, 200)} Safari/537.36",
        lambda: f"libfoo_{small()}.{small()}.{small()}-{small()}_amd64.deb",
        lambda: "ISBN " + isbn.format((d := "978" + digit(9)) + ean.calc_check_digit(d)),
        lambda: f"sha256: {hexa(64)}",
        lambda: f"commit {hexa(40)}",
        lambda: f"md5 {hexa(32)}",
        lambda: str(fakers["en_US"].uuid4()),
        lambda: f"link/ether {fakers['en_US'].mac_address()}",
        lambda: f"{rng.randint(1950, 2030)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} 0{digit(1)}:1{digit(1)}:22",
        lambda: f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}.{rng.randint(1950, 2030)}, 1{digit(1)}:3{digit(1)}",
        lambda: f"[{digit(5)}.{digit(6)}] usb 1-1: new device number {digit(1)}",
        lambda: f"pi is about 3.{digit(20)}",
        lambda: f"{digit(3)}x{digit(3)} matrix, det = -{digit(4)}.{digit(8)}",
        lambda: f"mtime {rng.randint(10**9, 2 * 10**9)}",
        lambda: f"{rng.randint(10**12, 2 * 10**12)} ms since the epoch",
        lambda: f"order no. {digit(10)}",
        lambda: f"Serial: {digit(12)}",
        lambda: f"total {rng.randint(1, 999)} {digit(3)} {digit(3)} bytes",
        lambda: f"population {rng.randint(1, 99)},{digit(3)},{digit(3)}",
        lambda: f"Boston, MA 0{digit(4)}-{digit(4)}",
        lambda: f"{rng.uniform(-90, 90):.6f}, {rng.uniform(-180, 180):.6f}",
        lambda: f"$ {rng.randint(1, 99)},{digit(3)}.{digit(2)} and EUR {rng.randint(1, 99)} {digit(3)},00",
        lambda: f"0x{hexa(8)} 0x{hexa(16)}",
        lambda: " ".join(hexa(2) for _ in range(16)),
        lambda: " ".join(digit(2) for _ in range(12)),
        lambda: f"OID 1.3.6.1.4.1.{digit(4)}.{small()}",
        lambda: f"See section {small()}.{small()}.{small()}.{small()} and RFC {digit(4)}.",
        lambda: f"{digit(4)}-{digit(4)}: ISSN of a journal",
        lambda: f"EAN 40{digit(11)}",
        lambda: f"line {digit(4)}: {digit(3)} of {digit(4)} tests in {digit(2)}.{digit(3)} s",
        lambda: f"pid {digit(5)}, uid {digit(4)}, {digit(7)} kB",
        lambda: f"bug #{digit(6)}, CVE-20{digit(2)}-{digit(5)}",
        lambda: f"{digit(4)} {digit(4)} {digit(4)} {digit(3)} are checksums",
        lambda: f"std::vector<int>::iterator a{digit(3)}::b",
        lambda: f"T{digit(2)}:{digit(2)}:{digit(2)} 2{digit(3)}:10:11",
        lambda: f"doi:10.{digit(4)}/s{digit(5)}-0{digit(2)}-{digit(5)}-{digit(1)}",
        lambda: f"{rng.randint(1900, 2030)}-{rng.randint(1900, 2030)}, pp. {digit(3)}-{digit(3)}",
        lambda: f"part {digit(5)}-{digit(5)} rev {rng.choice('ABC')}",
        lambda: f"tracking 1Z{hexa(6).upper()}{digit(10)}",
        lambda: f"AB{digit(2)} {digit(4)} {digit(4)}",
        lambda: f"{digit(9)}",
        lambda: f"{digit(11)} rows",
        lambda: f"id={digit(16)}",
        lambda: f"seed {digit(18)}",
        lambda: f"GB{digit(2)}SAMPLE{digit(12)}",
        lambda: f"score {digit(2)}-{digit(2)}, {digit(3)}-{digit(3)}",
        lambda: f"{digit(1)}.{digit(3)}.{digit(3)} Einwohner",
        lambda: f"A{digit(3)}-{digit(2)}-{digit(4)}Z",
    )
    for i in range(400):
        rows.none(makers[i % len(makers)]())


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261201
    rng = random.Random(seed)
    fakers = {}
    for locale in set(LOCALES) | {"pt_PT", "de_AT", "de_CH", "fi_FI", "no_NO", "sk_SK"}:
        fakers[locale] = Faker(locale)
    for number, locale in enumerate(sorted(fakers)):
        fakers[locale].seed_instance(seed + number)
    rows = Rows()
    parts = (
        mail,
        addresses,
        cards,
        accounts,
        identities,
        phones,
        keys,
        private_keys,
        passwords,
        no_secrets,
        look_alikes,
    )
    for part in parts:
        part(rows, fakers, rng)
    for row in rows.rows:
        text, spans = row["text"].encode(), row["spans"]
        cut = spans[0][0] + 3 if spans and spans[0][2] in ("api_key", "private_key") else 0
        pieces = [piece.decode() for piece in (text[:cut], text[cut:]) if piece]
        print(json.dumps({"text": pieces, "spans": spans}, ensure_ascii=False))


main()
