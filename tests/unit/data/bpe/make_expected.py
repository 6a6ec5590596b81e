"""Writes the fixtures beside it: small vocabularies and what Hugging Face's library makes of our texts with them.

Run by hand, with tokenizers 0.23.3 installed. All text is made up here.
"""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
END = "<|endoftext|>"

TRAINING = """
The harbour master writes down every ship that enters, every ship that leaves, and what the weather was like.
It's an old
habit; nobody has asked for the lists in years, but they'll be there when somebody does. We've read them: 1821,
1822, 1823.
If the tide's out, the boats don't move. If it isn't, they do. That's all there is to it, and that is what he'd
say, too.

    for (int ship = 0; ship < ships; ++ship) {
        if (ships[ship].tide == kOut) continue;   // waits
        leave(ships[ship], 12.5, "north-east");
    }

Der Hafenmeister schreibt auf, welches Schiff kommt und welches geht; über das Wetter schreibt er mehr als über
Schiffe.
Le maître du port note chaque navire qui entre, chaque navire qui sort, et le temps qu'il fait. Ça n'intéresse
personne.
Начальник порта записывает каждый корабль, который приходит, и каждый корабль, который уходит, и какая была погода.
港の長は入る船と出る船をすべて書き留め、天気も書く。港长记下每一艘进港的船和每一艘出港的船，还有天气。
항구의 책임자는 들어오는 배와 나가는 배를 모두 적고 날씨도 적는다. บันทึกเรือทุกลำ नाविक हर जहाज़ को लिखता है
""" * 3

TEXTS = [
    "", " ", "  ", "\n", "\t", "\r\n", "\r\n\r\n", " \n ", "\n  x", "  \n\n  x", "a  b", "a   b", "a \t b", "a\t\tb",
    "a\n\n\nb\n", "x  ", "x \n", "x\n ", "x\n \n  y", "\u00a0x", " \u00a0x", "\u00a0\u00a0x", "\u3000x\u3000\u3000y",
    "a\u2028b\u2029 c", "a\x85b\x1cc\x1d\x1e\x1fd\x0b\x0ce", "\ufeffx", "\u200bx \u200b x", "a\rb\r\rc\r",
    "It's they'll we've he'd I'm you're don't", "IT'S THEY'LL WE'VE HE'D I'M YOU'RE DON'T", "'sure 'tis 'LL 'Re 'vE",
    "x'\u017f y'\u017fz", "''s '''ll 's's", "'", "''", "' s", "l'eau d'or qu'il", "\u2019s they\u2019ll",
    "1 12 123 1234 12345 1234567", "x1y22z333", "3.14159e-10", "\u0664\u0662\u0660\u0661",
    "\u2167 \u00b2\u00bd \u4e09\u5341", "!!!", "!a", "!!a", " !a", "  !a", "a!b?c", "...\n\n", "?!\r\n\r\nx", " --\n",
    "$5,000.00", "(ships[ship]) {\n    }\n", "#include <vector>\n\nint main() {\n\treturn 0;\n}\n", "a_b__c-d",
    "http://ship.example/a?b=c&d=%20", "Le ma\u00eetre du port", "e\u0301e\u0300 a\u0308\u0323",
    "\u1100\u1161\u11a8 \uac01", "\u212b \u2126 \u212a'\u212a", "\u00fcber \u00fc \u00dcBER",
    "\u043a\u043e\u0440\u0430\u0431\u043b\u044c \u041a\u041e\u0420\u0410\u0411\u041b\u042c",
    "\u6e2f\u306e\u9577\u306f\u5165\u308b\u8239\u3002\u6e2f\u957f\u8bb0\u4e0b",
    "\u0928\u093e\u0935\u093f\u0915 \u0939\u0930", "\u0e1a\u0e31\u0e19\u0e17\u0e36\u0e01\u0e40\u0e23\u0e37\u0e2d",
    "\U0001f6a2\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea \u2764\ufe0f",
    "\u1c89\u1c8a \U00010d40\U00010d41x", "\U000323b0 \U0001f9a0", "\x00\x01\x02 \x7f", "a\x00b",
    "\ue000\uffff\U0010ffff", "ships ships  ships", "-" * 100, " " * 100 + "x", "a" * 150, "ab" * 90, "\u6e2f" * 70,
    "<|endoftext|>", "a<|endoftext|>b", "<|endoftext|><|endoftext|>", "<|endoftex", "<call>x</call>", "x <call> y",
    "<|endoftext|> <call>e\u0301</call>", "<callx", "<<call>>",
]


def trained(pattern: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    if pattern == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    else:
        regex = LLAMA3 if pattern == "llama3" else LLAMA3.replace("{1,3}", "")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(regex), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if pattern == "qwen":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    specials = [END] if pattern == "gpt2" else []
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TRAINING], trainer)
    tokenizer.add_special_tokens([END])
    tokenizer.add_tokens([AddedToken("<call>", normalized=False), AddedToken("</call>", normalized=True)])
    return tokenizer


def ids(tokenizer: Tokenizer, text: str, encode_special_tokens: bool) -> list[int]:
    tokenizer.encode_special_tokens = encode_special_tokens
    return tokenizer.encode(text, add_special_tokens=False).ids


def main():
    (HERE / "training.txt").write_text(TRAINING, newline="\n")
    for pattern in ("gpt2", "llama3", "qwen"):
        tokenizer = trained(pattern)
        settings = json.loads(tokenizer.to_str())
        if pattern == "llama3":
            settings["model"]["ignore_merges"] = True
            del settings["model"]["merges"][100]  # a token that only ignore_merges reaches
            tokenizer = Tokenizer.from_str(json.dumps(settings))
        if pattern == "qwen":  # as older files have them
            settings["model"]["merges"] = [" ".join(pair) for pair in settings["model"]["merges"]]
            tokenizer = Tokenizer.from_str(json.dumps(settings))
        (HERE / f"{pattern}.json").write_text(json.dumps(settings, ensure_ascii=False) + "\n")
        with open(HERE / f"{pattern}_expected.jsonl", "w", encoding="utf-8") as file:
            for text in TEXTS:
                row = {"text": text, "plain": ids(tokenizer, text, True), "parsed": ids(tokenizer, text, False)}
                file.write(json.dumps(row) + "\n")


main()
