"""The bilingual lexicon of the built-in corpus: words with all that German and English inflection need to know of them.

The tables are text, one entry a line, so that a reader can check them like a dictionary. A field of several names
separates them with spaces. Names with a capital letter are German nouns, names in lower case are kinds of nouns.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Noun:
    """A noun of both languages. ``oblique`` is its accusative and dative singular (weak nouns add -n or -en)."""

    german: str
    gender: str  # "m", "f" or "n"
    plural: str
    genitive: str
    oblique: str
    english: str
    english_plural: str
    kinds: tuple[str, ...]

    def is_a(self, names: tuple[str, ...]) -> bool:
        """Whether one of ``names`` is this noun or one of its kinds."""
        return self.german in names or any(kind in names for kind in self.kinds)


@dataclass(frozen=True)
class Adjective:
    """An adjective; ``stem`` takes the endings (*teuer*, but *teur-e*)."""

    german: str
    stem: str
    english: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class GermanVerb:
    """A German verb; ``infinitive`` and ``third_person`` (singular present) are without the separable ``particle``."""

    particle: str
    infinitive: str
    third_person: str
    participle: str
    auxiliary: str  # "haben" or "sein"
    reflexive: bool = False


@dataclass(frozen=True)
class EnglishVerb:
    """An English verb; ``particle`` follows the verb (*pick up*), and a pronoun object stands between the two."""

    base: str
    past: str
    participle: str
    particle: str = ""

    @property
    def third_person(self) -> str:
        """*goes*, *tidies*, *has*, *sees*."""
        if self.base == "have":
            return "has"
        return self.base + "es" if self.base == "go" else add_s(self.base)

    @property
    def progressive(self) -> str:
        """*reading*, *writing*, *putting*."""
        if self.base in _DOUBLED:
            return self.base + self.base[-1] + "ing"
        if self.base.endswith("e") and not self.base.endswith("ee"):
            return self.base[:-1] + "ing"
        return self.base + "ing"


@dataclass(frozen=True)
class Frame:
    """A verb in one meaning: what it is in both languages, and which subjects, objects, places and adverbs suit it.

    ``pattern`` lists the German objects: ``acc``, ``dat``, ``auf:acc``, ``mit:dat`` and so on, ``dir`` (a direction).
    ``english_pattern`` is "" (objects follow the verb), ``receiver`` (the dative becomes *to* and stands last),
    ``swap`` (the dative becomes the subject), or a preposition before the only object.

    Flags: ``habit`` suits *every day*; ``now`` suits *gerade* and the English progressive; ``state`` may stand in
    the present without an adverb; ``present`` has no other tense; ``lasting`` suits *während*; ``luck`` is not done on
    purpose (no modal, no *um zu*); ``vague`` has an indefinite object; ``placed`` always has a place.
    """

    german: GermanVerb
    english: EnglishVerb
    subjects: tuple[str, ...]
    pattern: tuple[str, ...]
    english_pattern: str
    objects: tuple[str, ...]
    places: tuple[str, ...]
    flags: frozenset[str]
    manners: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Place:
    """How one is at a place and how one gets there: the prepositions of both languages."""

    noun: Noun
    location: str
    direction: str
    direction_case: str
    english_location: str
    english_direction: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """A passing state of a person, and the verbs (German infinitives) of what one does because and in spite of it."""

    words: Phrase
    because: tuple[str, ...]
    despite: tuple[str, ...]


@dataclass(frozen=True)
class Phrase:
    """A fixed expression in both languages (an adverb, a conjunction)."""

    german: str
    english: str


def add_s(word: str) -> str:
    """The regular English plural, or third person singular: *buses*, *stories*, *cars*."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines() if line.strip()]


# German noun, gender, plural, genitive if not regular (or "weak" and the form of all other cases) | English | kinds
_NOUNS = """
Mann m Männer Mannes               | man men            | person
Lehrer m Lehrer                    | teacher            | person profession
Arzt m Ärzte Arztes                | doctor             | person profession
Freund m Freunde Freundes          | friend             | person own
Nachbar m Nachbarn weak Nachbarn   | neighbour          | person own
Student m Studenten weak Studenten | student            | person learner
Schüler m Schüler                  | pupil              | person child learner
Bäcker m Bäcker                    | baker              | person profession
Koch m Köche                       | cook               | person profession
Bauer m Bauern weak Bauern         | farmer             | person profession
Polizist m Polizisten weak Polizisten | policeman policemen | person profession
Junge m Jungen weak Jungen         | boy                | person child
Vater m Väter                      | father             | person family
Bruder m Brüder                    | brother            | person family
Sohn m Söhne Sohnes                | son                | person family child
Onkel m Onkel                      | uncle              | person family
Großvater m Großväter              | grandfather        | person family
Chef m Chefs                       | boss               | person own
Künstler m Künstler                | artist             | person profession
Kollege m Kollegen weak Kollegen   | colleague          | person own
Frau f Frauen                      | woman women        | person
Lehrerin f Lehrerinnen             | teacher            | person profession
Ärztin f Ärztinnen                 | doctor             | person profession
Freundin f Freundinnen             | friend             | person own
Nachbarin f Nachbarinnen           | neighbour          | person own
Krankenschwester f Krankenschwestern | nurse            | person profession
Mutter f Mütter                    | mother             | person family
Schwester f Schwestern             | sister             | person family
Tochter f Töchter                  | daughter           | person family child
Tante f Tanten                     | aunt               | person family
Großmutter f Großmütter            | grandmother        | person family
Sängerin f Sängerinnen             | singer             | person profession
Kind n Kinder Kindes               | child children     | person child
Mädchen n Mädchen                  | girl               | person child

Hund m Hunde Hundes                | dog                | animal pet
Katze f Katzen                     | cat                | animal pet
Pferd n Pferde                     | horse              | animal farm
Vogel m Vögel                      | bird               | animal

Buch n Bücher                      | book               | readable written portable
Gedicht n Gedichte                 | poem               | readable written
Geschichte f Geschichten           | story              | readable written story
Brief m Briefe                     | letter             | readable written
Bericht m Berichte                 | report             | readable written
Zeitung f Zeitungen                | newspaper          | readable

Apfel m Äpfel                      | apple              | food fruit
Kuchen m Kuchen                    | cake               | food dish cake
Ei n Eier                          | egg                | food
Kartoffel f Kartoffeln             | potato potatoes    | food
Suppe f Suppen                     | soup               | food dish soup
Kaffee m -                         | coffee             | drink
Tee m -                            | tea                | drink
Milch f -                          | milk               | drink
Wasser n -                         | water              | drink

Auto n Autos                       | car                | vehicle machine coloured
Fahrrad n Fahrräder                | bicycle            | vehicle machine coloured
Bus m Busse                        | bus                | transport
Zug m Züge                         | train              | transport
Schiff n Schiffe                   | ship               | transport

Hemd n Hemden                      | shirt              | clothing coloured
Kleid n Kleider                    | dress              | clothing coloured
Mantel m Mäntel                    | coat               | clothing coloured
Hut m Hüte                         | hat                | clothing coloured
Jacke f Jacken                     | jacket             | clothing coloured

Tisch m Tische                     | table              | furniture
Stuhl m Stühle                     | chair              | furniture
Bett n Betten                      | bed                | furniture
Lampe f Lampen                     | lamp               | furniture switched
Tür f Türen                        | door               | opening
Fenster n Fenster                  | window             | opening
Computer m Computer                | computer           | device machine switched
Radio n Radios                     | radio              | device machine switched
Uhr f Uhren                        | watch              | device machine portable

Schlüssel m Schlüssel              | key                | thing lost
Tasche f Taschen                   | bag                | thing lost luggage coloured portable
Koffer m Koffer                    | suitcase           | thing lost luggage coloured
Ring m Ringe                       | ring               | thing lost portable
Schirm m Schirme                   | umbrella           | thing lost coloured portable
Ball m Bälle                       | ball               | thing lost coloured portable
Geschenk n Geschenke               | gift               | thing gift
Blume f Blumen                     | flower             | thing gift flower
Bild n Bilder                      | picture            | thing art portable
Baum m Bäume                       | tree               | nature
Berg m Berge                       | mountain           | nature

Frage f Fragen                     | question           | matter
Problem n Probleme                 | problem            | matter
Aufgabe f Aufgaben                 | task               | matter
Fehler m Fehler                    | mistake            | matter
Prüfung f Prüfungen                | exam               | exam
Film m Filme                       | film               | show
Lied n Lieder                      | song               | show music
Konzert n Konzerte                 | concert            | show event
Spiel n Spiele                     | game               | show event
Reise f Reisen                     | trip               | event
Fest n Feste                       | party              | event
Rechnung f Rechnungen              | bill               | document

Haus n Häuser                      | house              | building home
Schule f Schulen                   | school             | building
Kirche f Kirchen                   | church             | building sight
Museum n Museen                    | museum             | building sight
Brücke f Brücken                   | bridge             | building sight
Krankenhaus n Krankenhäuser        | hospital           | building
Bahnhof m Bahnhöfe                 | station            | building
Restaurant n Restaurants           | restaurant         | building
Hotel n Hotels                     | hotel              | building
Büro n Büros                       | office             | room
Küche f Küchen                     | kitchen            | room
Zimmer n Zimmer                    | room               | room
Garten m Gärten                    | garden             | outdoors
Park m Parks                       | park               | outdoors
Markt m Märkte                     | market             | outdoors
Straße f Straßen                   | street             | outdoors
Wald m Wälder                      | forest             | outdoors
See m Seen                         | lake               | outdoors
Strand m Strände                   | beach              | outdoors
Bauernhof m Bauernhöfe             | farm               | outdoors
Bibliothek f Bibliotheken          | library            | building
Stadt f Städte                     | city               | town
Dorf n Dörfer                      | village            | town
"""

# First part as German joins it, English | heads. A compound inherits gender, plural and kinds from its head.
_COMPOUNDS = """
Holz wooden            | Tisch Stuhl Bett Tür Brücke Haus
Leder leather          | Tasche Jacke Koffer
Winter winter          | Jacke Mantel
Sommer summer          | Kleid
Küchen kitchen         | Tisch Fenster Lampe
Garten garden          | Tür Stuhl
Liebes love            | Brief Lied Geschichte
Apfel apple            | Kuchen Baum
Kartoffel potato       | Suppe
Gold gold              | Ring Uhr
Schul school           | Tasche Bus
Stadt city             | Park Bibliothek
Dorf village           | Kirche Schule
Hotel hotel            | Zimmer Küche
Kinder children's      | Buch Zimmer
Geburtstags birthday   | Geschenk Kuchen
Haus house             | Schlüssel
Auto car               | Schlüssel
"""

# German, stem with endings if it differs | English | kinds
_ADJECTIVES = """
alt            | old         | person animal building vehicle furniture device clothing town sight art thing
jung           | young       | person animal
groß           | big         | animal building vehicle furniture thing town fruit outdoors room
groß           | tall        | person
klein          | small       | animal building vehicle furniture thing town fruit outdoors room child
freundlich     | friendly    | person
nett           | nice        | person
klug           | clever      | person
berühmt        | famous      | profession sight town
reich          | rich        | person
fleißig        | hard-working | profession learner
müde           | tired       | person
schwarz        | black       | coloured animal
weiß           | white       | coloured animal
rot            | red         | coloured flower
blau           | blue        | coloured
grün           | green       | coloured
neu            | new         | building vehicle furniture device clothing thing readable matter show document room
schön          | beautiful   | building town outdoors art clothing show sight nature
teuer teur     | expensive   | vehicle furniture device clothing portable event
interessant    | interesting | readable matter show town
lang           | long        | readable event document exam
kurz           | short       | readable event exam
wichtig        | important   | readable matter document exam
schwer         | difficult   | matter exam
schwer         | heavy       | luggage furniture
einfach        | simple      | matter exam
gut            | good        | matter show dish
frisch         | fresh       | food drink
süß            | sweet       | fruit
kalt           | cold        | drink dish
heiß           | hot         | drink
"""

# States for "is ...": German | English | what one does because of it | what one does in spite of it
_STATES = """
müde        | tired   | schlafen sitzen vergessen ausmachen           | arbeiten tanzen aufräumen putzen bauen
krank       | ill     | schlafen anrufen zurückkommen trinken         | arbeiten tanzen schwimmen kochen einkaufen
hungrig     | hungry  | essen kochen frühstücken einkaufen            | arbeiten warten nachdenken teilnehmen zuhören
durstig     | thirsty | trinken                                       | arbeiten warten tanzen zuhören teilnehmen
glücklich   | happy   | singen tanzen lachen einladen schenken danken | zurückkommen beschweren verlassen
traurig     | sad     | anrufen schreiben denken nachdenken träumen   | singen tanzen lachen teilnehmen helfen
wütend      | angry   | beschweren verlassen nachdenken               | helfen danken antworten zuhören
beschäftigt | busy    | vergessen arbeiten verlieren                  | anrufen helfen besuchen aufpassen vorlesen
allein      | alone   | anrufen besuchen lesen träumen einladen       | tanzen lachen kochen singen frühstücken
"""

# Comparatives of persons: German | English
_COMPARATIVES = """
älter      | older
jünger     | younger
größer     | taller
klüger     | cleverer
"""

# Infinitive (particle before "-"), third person singular without particle, participle, "sein" if the auxiliary, "sich"
_GERMAN_VERBS = """
sehen sieht gesehen
kennen kennt gekannt
kaufen kauft gekauft
verkaufen verkauft verkauft
lesen liest gelesen
schreiben schreibt geschrieben
essen isst gegessen
trinken trinkt getrunken
kochen kocht gekocht
suchen sucht gesucht
finden findet gefunden
verlieren verliert verloren
vergessen vergisst vergessen
brauchen braucht gebraucht
mögen mag gemocht
lieben liebt geliebt
besuchen besucht besucht
treffen trifft getroffen
reparieren repariert repariert
bauen baut gebaut
putzen putzt geputzt
malen malt gemalt
singen singt gesungen
öffnen öffnet geöffnet
zu-machen macht zugemacht
tragen trägt getragen
bezahlen bezahlt bezahlt
verstehen versteht verstanden
lösen löst gelöst
füttern füttert gefüttert
mit-bringen bringt mitgebracht
an-rufen ruft angerufen
ab-holen holt abgeholt
ein-laden lädt eingeladen
auf-räumen räumt aufgeräumt
an-ziehen zieht angezogen
an-machen macht angemacht
aus-machen macht ausgemacht
vor-lesen liest vorgelesen
verlassen verlässt verlassen
geben gibt gegeben
schenken schenkt geschenkt
zeigen zeigt gezeigt
schicken schickt geschickt
erklären erklärt erklärt
zurück-geben gibt zurückgegeben
helfen hilft geholfen
danken dankt gedankt
zu-hören hört zugehört
antworten antwortet geantwortet
gehören gehört gehört
gefallen gefällt gefallen
warten wartet gewartet
denken denkt gedacht
sprechen spricht gesprochen
spielen spielt gespielt
träumen träumt geträumt
auf-passen passt aufgepasst
nach-denken denkt nachgedacht
teil-nehmen nimmt teilgenommen
freuen freut gefreut sich
erinnern erinnert erinnert sich
kümmern kümmert gekümmert sich
beschweren beschwert beschwert sich
lachen lacht gelacht
schlafen schläft geschlafen
arbeiten arbeitet gearbeitet
wohnen wohnt gewohnt
tanzen tanzt getanzt
schwimmen schwimmt geschwommen sein
sitzen sitzt gesessen
frühstücken frühstückt gefrühstückt
ein-kaufen kauft eingekauft
ein-schlafen schläft eingeschlafen sein
an-kommen kommt angekommen sein
zurück-kommen kommt zurückgekommen sein
gehen geht gegangen sein
fahren fährt gefahren sein
glauben glaubt geglaubt
wissen weiß gewusst
sagen sagt gesagt
hoffen hofft gehofft
fragen fragt gefragt
versuchen versucht versucht
versprechen verspricht versprochen
kosten kostet gekostet
sein ist gewesen sein
"""

# German | English (irregular forms follow; "_" joins verb and particle, "+" verb and preposition) | subjects |
# pattern | objects | places | flags | manners. The most usual verbs stand first: they are drawn most often.
_FRAMES = """
sehen         | see saw seen        | person | acc | person animal transport | town nature | luck
gehen         | go went gone        | person | dir | | | habit
kaufen        | buy bought bought   | person | acc | food clothing Buch Zeitung Blume | shop | habit now
lesen         | read read read      | person | acc | readable | read | habit now lasting | langsam leise
warten        | wait+for            | person | auf:acc | person transport | town fetch | now lasting habit
helfen        | help                | person | dat | person | work home | habit now
arbeiten      | work                | person | | | work farm | habit now lasting | langsam schnell
suchen        | look+for            | person | acc | lost pet | home town | now lasting |
geben         | give gave given     | person | dat acc | portable thing readable | |
anrufen       | call                | person | acc | person | | habit now
sprechen      | talk+to             | person | mit:dat | person | work eat town | now lasting habit | laut leise
schreiben     | write wrote written | person | acc | written | read | now lasting | langsam
fahren        | drive drove driven  | person | dir | | | habit
schlafen      | sleep slept slept   | person pet | | | sleep | habit now lasting
essen         | eat ate eaten       | person | acc | food | eat | habit now lasting | langsam schnell
besuchen      | visit               | person | acc | person sight town | | habit
finden        | find found found    | person | acc | lost pet | home town nature | luck
brauchen      | need                | person | acc | device thing furniture vehicle clothing | | state
zeigen        | show showed shown   | person | dat acc | art readable room home town | |
treffen       | meet met met        | person | acc | person | town eat | habit
trinken       | drink drank drunk   | person | acc | drink | eat | habit now lasting | langsam schnell
denken        | think+of thought thought | person | an:acc | person event exam | | habit
kaufen        | buy bought bought   | person | acc | vehicle furniture device home portable | |
spielen       | play+with           | child | mit:dat | pet child Ball | home nature | now lasting habit
kennen        | know knew known     | person | acc | person | | state present
abholen       | pick_up             | person | acc | person luggage | fetch | habit
warten        | wait                | person | | | fetch town | now lasting
schenken      | give gave given     | person | dat acc | portable gift clothing | |
danken        | thank               | person | dat | person | | | höflich
reparieren    | repair              | person | acc | machine furniture | repair | now lasting | schnell vorsichtig
mögen         | like                | person | acc | readable dish pet show art child | | state present
einladen      | invite              | person | acc | person | |
putzen        | clean               | person | acc | opening room | | habit now lasting | schnell
vergessen     | forget forgot forgotten | person | acc | lost gift document | work | luck
tanzen        | dance               | person | | | eat nature | habit now lasting
öffnen        | open                | person | acc | opening Brief luggage Geschenk | | | vorsichtig leise
erklären      | explain receiver    | person | dat acc | matter | work | now | langsam
kochen        | cook                | person | acc | soup Kartoffel Ei | cook | habit now lasting |
verkaufen     | sell sold sold      | person | acc | vehicle furniture device home art | |
zuhören       | listen+to           | person | dat | person | work eat | now
lachen        | laugh+about         | person | über:acc | Geschichte Film Fehler | | habit now | laut
aufräumen     | tidy_up             | person | acc | room | | habit now | schnell
tragen        | wear wore worn      | person | acc | clothing | work town | habit now
kümmern       | take_care+of took taken | person | um:acc | child animal | farm home | habit lasting
verlieren     | lose lost lost      | person | acc | lost | town nature | luck
spielen       | play                | child pet | | | home nature | habit now lasting | laut leise
schicken      | send sent sent      | person | dat acc | written gift | |
freuen        | look_forward+to     | person | auf:acc | event gift | | state present
aufpassen     | look+after          | person | auf:acc | child pet | home | habit now lasting
sitzen        | sit sat sat         | person | | | read eat | habit now lasting placed
bauen         | build built built   | profession family | acc | home Tisch Brücke | | now
zumachen      | close               | person | acc | opening luggage | | | vorsichtig leise
verstehen     | understand understood understood | person | acc | matter | | state
träumen       | dream+of            | person | von:dat | Reise Haus Pferd | | habit vague
antworten     | answer              | person | dat | person | | | schnell höflich
singen        | sing sang sung      | person | acc | music | eat nature | habit now lasting | laut leise
mitbringen    | bring brought brought | person | acc | dish gift | |
einkaufen     | shop                | person | | | shop | habit now lasting
lieben        | love                | person | acc | family pet town | | state present
nachdenken    | think+about thought thought | person | über:acc | matter event | | now lasting habit
vorlesen      | read read read      | person | dat acc | Geschichte Gedicht Brief Buch | home | habit now | leise laut
tragen        | carry               | person | acc | luggage furniture | | now | langsam vorsichtig
lösen         | solve               | person | acc | Problem Aufgabe | work | | schnell
bezahlen      | pay paid paid       | person | acc | Rechnung | eat |
frühstücken   | have_breakfast had had | person | | | eat | habit now lasting
malen         | paint               | person | acc | nature sight Pferd Vogel Blume | read | now lasting | langsam
gefallen      | like swap           | show readable art clothing town | dat | person | | state luck
zurückgeben   | return receiver     | person | dat acc | Buch lost portable | |
teilnehmen    | take_part+in took taken | person | an:dat | event exam | |
anziehen      | put_on put put      | person | acc | clothing | | | schnell langsam
ankommen      | arrive              | person | | | fetch | luck
verlassen     | leave left left     | person | acc | home town Krankenhaus Büro Museum | | | leise schnell
erinnern      | remember            | person | an:acc | event exam person | | state
beschweren    | complain+about      | person | über:acc | Rechnung Hotel Restaurant Suppe | | luck | laut höflich
füttern       | feed fed fed        | person | acc | animal | farm | habit now lasting
schwimmen     | swim swam swum      | person | | | water | habit now lasting | langsam schnell
ausmachen     | turn_off            | person | acc | switched | | |
gehören       | belong+to           | vehicle furniture device clothing home portable | dat | person | | state present
zurückkommen  | come_back came come | person | | | | luck
anmachen      | turn_on             | person | acc | switched | | |
"""

_DOUBLED = ("put", "get", "sit", "run", "swim", "shop", "forget")

# Noun | location (with dative) | direction, case | English location | English direction | groups
_PLACES = """
Küche       | in | in acc  | in  | into | home eat cook
Garten      | in | in acc  | in  | into | home eat read sleep repair
Park        | in | in acc  | in  | to   | town read nature
Stadt       | in | in acc  | in  | to   | town shop
Markt       | auf | auf acc | at | to   | town shop
Bahnhof     | an | zu dat  | at  | to   | town fetch
Straße      | auf | auf acc | on | onto | town
Büro        | in | in acc  | in  | to   | work
Schule      | in | in acc  | at  | to   | work fetch
Bibliothek  | in | in acc  | in  | to   | work read
Krankenhaus | in | in acc  | in  | to   | work fetch
Hotel       | in | in acc  | in  | to   | eat sleep fetch
Restaurant  | in | in acc  | in  | to   | eat
Wald        | in | in acc  | in  | into | nature
See         | an | an acc  | at  | to   | nature
Bauernhof   | auf | auf acc | on | to   | farm
Strand      | an | an acc  | on  | to   | nature sleep
Zimmer      | in | in acc  | in  | into | sleep
Museum      | in | in acc  | in  | to   | sights
See         | in | in acc  | in  | into | water
"""

CITIES = (
    Phrase("Berlin", "Berlin"),
    Phrase("Hamburg", "Hamburg"),
    Phrase("Paris", "Paris"),
    Phrase("London", "London"),
    Phrase("Wien", "Vienna"),
    Phrase("München", "Munich"),
)
MALE_NAMES = ("Peter", "Thomas", "Paul", "Martin")
FEMALE_NAMES = ("Anna", "Maria", "Julia", "Laura")
SURNAMES = ("Weber", "Schmidt", "Wagner", "Becker", "Hoffmann")

MANNERS = {
    german: Phrase(german, english)
    for german, english in (
        ("langsam", "slowly"),
        ("schnell", "quickly"),
        ("leise", "quietly"),
        ("laut", "loudly"),
        ("vorsichtig", "carefully"),
        ("höflich", "politely"),
    )
}
FREQUENCIES = (
    Phrase("oft", "often"),
    Phrase("immer", "always"),
    Phrase("manchmal", "sometimes"),
    Phrase("selten", "rarely"),
    Phrase("nie", "never"),
)
WEEKDAYS = (
    Phrase("Montag", "Monday"),
    Phrase("Dienstag", "Tuesday"),
    Phrase("Mittwoch", "Wednesday"),
    Phrase("Donnerstag", "Thursday"),
    Phrase("Freitag", "Friday"),
    Phrase("Samstag", "Saturday"),
    Phrase("Sonntag", "Sunday"),
)
DAY_PARTS = (Phrase("morgen", "morning"), Phrase("nachmittag", "afternoon"), Phrase("abend", "evening"))
MONTHS = (
    Phrase("Januar", "January"),
    Phrase("März", "March"),
    Phrase("April", "April"),
    Phrase("Mai", "May"),
    Phrase("August", "August"),
    Phrase("Dezember", "December"),
)
PAST_TIMES = (
    Phrase("gestern", "yesterday"),
    Phrase("gestern Abend", "yesterday evening"),
    Phrase("letzte Woche", "last week"),
    Phrase("letzten Monat", "last month"),
    Phrase("letztes Jahr", "last year"),
    Phrase("heute Morgen", "this morning"),
)
FUTURE_TIMES = (
    Phrase("morgen", "tomorrow"),
    Phrase("morgen Abend", "tomorrow evening"),
    Phrase("nächste Woche", "next week"),
    Phrase("nächsten Monat", "next month"),
    Phrase("nächstes Jahr", "next year"),
    Phrase("heute Abend", "this evening"),
)
HABITUAL_TIMES = (
    Phrase("jeden Tag", "every day"),
    Phrase("jeden Morgen", "every morning"),
    Phrase("jeden Abend", "every evening"),
    Phrase("jede Woche", "every week"),
    Phrase("am Wochenende", "at the weekend"),
)
# Unit of time in the dative plural of "vor drei Tagen".
TIME_UNITS = (
    Phrase("Tagen", "days"),
    Phrase("Wochen", "weeks"),
    Phrase("Monaten", "months"),
    Phrase("Jahren", "years"),
)
TRANSPORT = (
    Phrase("mit dem Zug", "by train"),
    Phrase("mit dem Bus", "by bus"),
    Phrase("mit dem Fahrrad", "by bicycle"),
    Phrase("mit dem Auto", "by car"),
)


@dataclass(frozen=True)
class Modal:
    """A German modal in one tense, by person, and its English: an auxiliary, or a verb with *to*."""

    infinitive: str
    forms: tuple[str, ...]  # first, second, third person singular; first and third person plural
    english: str
    past: bool
    negatable: bool = True


MODALS = (
    Modal("können", ("kann", "kannst", "kann", "können", "können"), "can", False),
    Modal("müssen", ("muss", "musst", "muss", "müssen", "müssen"), "have to", False),
    Modal("wollen", ("will", "willst", "will", "wollen", "wollen"), "want to", False),
    Modal("sollen", ("soll", "sollst", "soll", "sollen", "sollen"), "should", False),
    Modal("dürfen", ("darf", "darfst", "darf", "dürfen", "dürfen"), "be allowed to", False),
    Modal("möchten", ("möchte", "möchtest", "möchte", "möchten", "möchten"), "would like to", False, negatable=False),
    Modal("können", ("konnte", "konntest", "konnte", "konnten", "konnten"), "could", True),
    Modal("müssen", ("musste", "musstest", "musste", "mussten", "mussten"), "have to", True),
    Modal("wollen", ("wollte", "wolltest", "wollte", "wollten", "wollten"), "want to", True),
    Modal("dürfen", ("durfte", "durftest", "durfte", "durften", "durften"), "be allowed to", True),
)


def _parse_noun(row: list[str]) -> Noun:
    german, english, kinds = row
    nominative, gender, plural, *rest = german.split()
    genitive = nominative if gender == "f" else nominative + ("es" if nominative.endswith(("s", "z", "ß")) else "s")
    oblique = nominative
    if rest[:1] == ["weak"]:
        genitive = oblique = rest[1]
    elif rest:
        genitive = rest[0]
    singular, *plurals = english.split()
    return Noun(
        german=nominative,
        gender=gender,
        plural="" if plural == "-" else plural,
        genitive=genitive,
        oblique=oblique,
        english=singular,
        english_plural=plurals[0] if plurals else add_s(singular),
        kinds=tuple(kinds.split()),
    )


def _compound(first: str, english: str, head: Noun) -> Noun:
    def join(form: str) -> str:
        return first + form[0].lower() + form[1:] if form else ""

    return Noun(
        german=join(head.german),
        gender=head.gender,
        plural=join(head.plural),
        genitive=join(head.genitive),
        oblique=join(head.oblique),
        english=f"{english} {head.english}",
        english_plural=f"{english} {head.english_plural}",
        kinds=(*head.kinds, "compound"),
    )


def _parse_german_verb(line: str) -> tuple[str, GermanVerb]:
    name, third_person, participle, *rest = line.split()
    particle, _, infinitive = name.rpartition("-")
    verb = GermanVerb(
        particle, infinitive, third_person, participle, "sein" if "sein" in rest else "haben", reflexive="sich" in rest
    )
    return particle + infinitive, verb


def parse_english_verb(text: str) -> EnglishVerb:
    """An English verb from *give gave given*, *call* (regular) or *pick_up* (with a particle)."""
    base, *irregular = text.split()
    base, _, particle = base.partition("_")
    if not irregular:
        past = base + "d" if base.endswith("e") else base + "ed"
        if base.endswith("y") and base[-2] not in "aeiou":
            past = base[:-1] + "ied"
        elif base in _DOUBLED:
            past = base + base[-1] + "ed"
        irregular = [past, past]
    return EnglishVerb(base, irregular[0], irregular[1], particle)


def _parse_frame(row: list[str]) -> Frame:
    german, english, subjects, pattern, objects, places, flags, manners = (row + [""] * 8)[:8]
    head, *forms = english.split()
    english_pattern = ""
    if forms and forms[-1] in ("receiver", "swap"):
        english_pattern = forms.pop()
    if "+" in head:
        head, english_pattern = head.split("+")
    return Frame(
        german=GERMAN_VERBS[german],
        english=parse_english_verb(" ".join([head, *forms])),
        subjects=tuple(subjects.split()),
        pattern=tuple(pattern.split()),
        english_pattern=english_pattern,
        objects=tuple(objects.split()),
        places=tuple(places.split()),
        flags=frozenset(flags.split()),
        manners=tuple(manners.split()),
    )


def _all_nouns() -> dict[str, Noun]:
    nouns = {noun.german: noun for noun in map(_parse_noun, _rows(_NOUNS))}
    for first, heads in _rows(_COMPOUNDS):
        german, english = first.split()
        for head in heads.split():
            compound = _compound(german, english, nouns[head])
            nouns[compound.german] = compound
    return nouns


NOUNS = _all_nouns()
ADJECTIVES = tuple(
    Adjective(german.split()[0], german.split()[-1].removesuffix("e"), english, tuple(kinds.split()))
    for german, english, kinds in _rows(_ADJECTIVES)
)
STATES = tuple(
    State(Phrase(german, english), tuple(because.split()), tuple(despite.split()))
    for german, english, because, despite in _rows(_STATES)
)
COMPARATIVES = tuple(Phrase(german, english) for german, english in _rows(_COMPARATIVES))
GERMAN_VERBS = dict(map(_parse_german_verb, _GERMAN_VERBS.strip().splitlines()))
FRAMES = tuple(map(_parse_frame, _rows(_FRAMES)))
PLACES = tuple(
    Place(NOUNS[noun], location, *direction.split(), english_location, english_direction, tuple(groups.split()))
    for noun, location, direction, english_location, english_direction, groups in _rows(_PLACES)
)
